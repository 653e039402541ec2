// Sets the theme before the page is drawn: the choice of the reader, or the preference of the system.
{
  let chosen = null
  try {
    chosen = localStorage.getItem('theme')
  } catch {
    // Pages from files may have no storage.
  }
  const prefersDark = matchMedia('(prefers-color-scheme: dark)').matches
  document.documentElement.dataset.theme = chosen ?? (prefersDark ? 'dark' : 'light')
}
