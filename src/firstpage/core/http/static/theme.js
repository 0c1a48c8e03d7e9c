// Light and dark: applies the chosen theme before the first paint, and switches it.
// A classic script, so that no page flashes.
(() => {
  const root = document.documentElement;
  try {
    const chosen = localStorage.getItem("firstpage.theme");
    if (chosen === "light" || chosen === "dark") root.dataset.theme = chosen;
  } catch {
    // Without storage the theme of the system is used.
  }

  function dark() {
    const chosen = root.dataset.theme;
    return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  }

  function toggle() {
    root.dataset.theme = dark() ? "light" : "dark";
    try {
      localStorage.setItem("firstpage.theme", root.dataset.theme);
    } catch {
      // Without storage the theme is used for this page only.
    }
    window.dispatchEvent(new Event("themechange"));
  }

  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-theme-toggle]")) toggle();
  });
})();
