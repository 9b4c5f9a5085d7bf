// Before anything is painted: the choice made last time, if the browser lets a file remember it.
try {
  document.documentElement.dataset.theme = localStorage.getItem("epicortex-theme") || "";
} catch {
  document.documentElement.dataset.theme = "";
}
