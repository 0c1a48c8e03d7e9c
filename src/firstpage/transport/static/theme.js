// Applies the chosen theme before the first paint.  A classic script, so that no page flashes.
(() => {
  const root = document.documentElement;
  try {
    const chosen = localStorage.getItem("firstpage.theme");
    if (chosen === "light" || chosen === "dark") root.dataset.theme = chosen;
  } catch {
    // Without storage the theme of the system is used.
  }
})();
