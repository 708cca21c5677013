// What material leaves out for keyboards and screen readers.
function complete() {
  document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
  for (const region of document.querySelectorAll("pre > code, .md-typeset__scrollwrap")) {
    if (region.scrollWidth > region.clientWidth) region.tabIndex = 0;
    else region.removeAttribute("tabindex");
  }
}
addEventListener("load", complete);
addEventListener("resize", complete);
