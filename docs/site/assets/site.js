// The theme button, the menu of narrow screens, and the search. A page also works without it.
{
  const root = document.documentElement
  const base = root.dataset.base
  const find = name => document.getElementById(`site-${name}`)

  const theme = find('theme')
  const showTheme = () => {
    const other = root.dataset.theme === 'dark' ? 'light' : 'dark'
    theme.textContent = other === 'dark' ? 'Dark' : 'Light'
    theme.setAttribute('aria-label', `Use the ${other} theme`)
  }
  theme.hidden = false
  theme.addEventListener('click', () => {
    root.dataset.theme = root.dataset.theme === 'dark' ? 'light' : 'dark'
    try {
      localStorage.setItem('theme', root.dataset.theme)
    } catch {
      // The choice lasts for this page only.
    }
    showTheme()
  })
  showTheme()

  const menu = find('menu')
  menu.addEventListener('click', () => {
    const isOpen = document.body.classList.toggle('menu-open')
    menu.setAttribute('aria-expanded', String(isOpen))
  })
  document.querySelector('[aria-current="page"]')?.scrollIntoView({ block: 'nearest' })

  const input = find('search')
  const results = find('results')
  const status = find('search-status')
  const most = 12
  let index
  let active = -1
  input.closest('.search').hidden = false

  const loadScript = name =>
    new Promise((resolve, reject) => {
      const script = document.createElement('script')
      script.src = `${base}/${name}`
      script.addEventListener('load', resolve)
      script.addEventListener('error', reject)
      document.head.append(script)
    })
  /** Once, when somebody begins to search. */
  let loading
  const load = () => {
    loading ??= Promise.all([loadScript('minisearch.js'), loadScript('search-index.js')]).then(() => {
      const { options, index: stored } = globalThis.siteSearch
      index = globalThis.MiniSearch.loadJSON(stored, options)
    })
    return loading
  }

  const options = () => [...results.children]
  const choose = position => {
    const all = options()
    active = all.length ? (position + all.length) % all.length : -1
    for (const [at, option] of all.entries()) option.setAttribute('aria-selected', String(at === active))
    if (all[active]) input.setAttribute('aria-activedescendant', all[active].id)
    else input.removeAttribute('aria-activedescendant')
    all[active]?.scrollIntoView({ block: 'nearest' })
  }
  const show = isShown => {
    results.hidden = !isShown
    input.setAttribute('aria-expanded', String(isShown))
  }
  const search = async () => {
    const words = input.value.trim()
    if (!words) {
      results.replaceChildren()
      status.textContent = ''
      return show(false)
    }
    await load()
    // A later key press has another text.
    if (input.value.trim() !== words) return
    const found = index.search(words, {
      prefix: true,
      fuzzy: word => (word.length > 4 ? 0.2 : false),
      combineWith: 'AND',
      boost: { heading: 4, title: 2 },
    })
    results.replaceChildren(
      ...found.slice(0, most).map(({ heading, title, url }, at) => {
        const option = document.createElement('div')
        option.id = `site-result-${at}`
        option.setAttribute('role', 'option')
        option.dataset.url = `${base}/${url}`
        const name = document.createElement('strong')
        name.textContent = heading
        option.append(name)
        if (title !== heading) {
          const page = document.createElement('span')
          page.textContent = title
          option.append(page)
        }
        return option
      }),
    )
    status.textContent = found.length ? `${Math.min(found.length, most)} results` : `No results for ${words}`
    show(true)
    choose(0)
  }
  const open = option => {
    if (!option) return
    show(false)
    location.href = option.dataset.url
  }

  input.addEventListener('focus', () => void load())
  input.addEventListener('input', () => void search())
  input.addEventListener('keydown', event => {
    const actions = {
      ArrowDown: () => choose(active + 1),
      ArrowUp: () => choose(active - 1),
      Enter: () => open(options()[active]),
      Escape: () => {
        input.value = ''
        void search()
        input.blur()
      },
    }
    const action = actions[event.key]
    if (!action) return
    event.preventDefault()
    action()
  })
  results.addEventListener('click', event => open(event.target.closest('[role="option"]')))
  document.addEventListener('click', event => {
    if (!event.target.closest('.search')) show(false)
  })
  document.addEventListener('keydown', event => {
    const isTyping = event.target.closest('input, textarea, select') !== null
    if (event.key !== '/' || isTyping || event.ctrlKey || event.metaKey || event.altKey) return
    event.preventDefault()
    input.focus()
  })
}
