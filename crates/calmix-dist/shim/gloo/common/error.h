#pragma once
// See README.md in the folder above. ProcessGroupGloo.hpp includes this file and uses nothing of it.
