"""A file system that passes everything on to a folder, with a switch: a filer that fails and one that hangs.

    passthrough.py FOLDER MOUNTPOINT SWITCH

The file SWITCH says how it behaves: `ok`; `eio`, every call fails with EIO; `hang`, every call waits until the switch
says something else. Needs Linux with /dev/fuse, libfuse2 and fusepy 3.0.1 from PyPI. Nothing is cached by the kernel,
so every call of the program under test arrives here.
"""

import errno
import os
import sys
import time

from fuse import FUSE, FuseOSError, Operations


class Passthrough(Operations):
    def __init__(self, root, switch):
        self.root, self.switch = os.path.realpath(root), switch

    def __call__(self, op, *args):
        if op not in ("init", "destroy"):
            self.obey()
        try:
            return getattr(self, op)(*args)
        except OSError as error:
            raise FuseOSError(error.errno)

    def obey(self):
        while True:
            with open(self.switch) as switch:
                word = switch.read().strip()
            if word == "eio":
                raise FuseOSError(errno.EIO)
            if word != "hang":
                return
            time.sleep(0.05)

    def real(self, path):
        return os.path.join(self.root, path.lstrip("/"))

    def access(self, path, mode):
        if not os.access(self.real(path), mode):
            raise FuseOSError(errno.EACCES)

    def getattr(self, path, fh=None):
        status = os.lstat(self.real(path))
        names = ("atime", "ctime", "gid", "mode", "mtime", "nlink", "size", "uid")
        return {f"st_{name}": getattr(status, f"st_{name}") for name in names}

    def readdir(self, path, fh):
        return [".", ".."] + os.listdir(self.real(path))

    def readlink(self, path):
        return os.readlink(self.real(path))

    def mkdir(self, path, mode):
        return os.mkdir(self.real(path), mode)

    def rmdir(self, path):
        return os.rmdir(self.real(path))

    def unlink(self, path):
        return os.unlink(self.real(path))

    def rename(self, old, new):
        return os.rename(self.real(old), self.real(new))

    def chmod(self, path, mode):
        return os.chmod(self.real(path), mode)

    def utimens(self, path, times=None):
        return os.utime(self.real(path), times)

    def statfs(self, path):
        status = os.statvfs(self.real(path))
        names = ("bavail", "bfree", "blocks", "bsize", "favail", "ffree", "files", "flag", "frsize", "namemax")
        return {f"f_{name}": getattr(status, f"f_{name}") for name in names}

    def open(self, path, flags):
        return os.open(self.real(path), flags & ~os.O_APPEND)

    def create(self, path, mode, fi=None):
        return os.open(self.real(path), os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)

    def read(self, path, length, offset, fh):
        return os.pread(fh, length, offset)

    def write(self, path, data, offset, fh):
        return os.pwrite(fh, data, offset)

    def truncate(self, path, length, fh=None):
        return os.truncate(self.real(path), length)

    def flush(self, path, fh):
        return 0

    def release(self, path, fh):
        return os.close(fh)

    def fsync(self, path, datasync, fh):
        return os.fsync(fh)

    def fsyncdir(self, path, datasync, fh):
        return 0


if __name__ == "__main__":
    folder, mountpoint, switch = sys.argv[1:]
    timeouts = {"attr_timeout": 0, "entry_timeout": 0, "negative_timeout": 0}
    FUSE(Passthrough(folder, switch), mountpoint, foreground=True, direct_io=True, **timeouts)
