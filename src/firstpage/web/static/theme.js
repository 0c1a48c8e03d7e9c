// Sets the chosen colors before anything is drawn.  A classic script, so that no page flashes.
(() => {
  const root = document.documentElement;
  try {
    const chosen = localStorage.getItem("firstpage.theme");
    if (chosen === "light" || chosen === "dark") root.dataset.theme = chosen;
  } catch {
    // Storage may be shut; then the system's colors are taken.
  }
})();
