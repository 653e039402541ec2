// The frame of every page: navigation, breadcrumbs, search, banner and shortcuts.

import { useQuery } from '@tanstack/react-query'
import { Link, Outlet, useLocation, useNavigate } from '@tanstack/react-router'
import { type MouseEvent, useEffect, useRef, useState, useSyncExternalStore } from 'react'
import { Menu, MenuItem, MenuTrigger, Popover, Button as RawButton, Separator } from 'react-aria-components'
import type { Kind } from '../../api/kind.ts'
import { listPath, shownKinds } from '../data/places.ts'
import { countOf } from '../data/rows.ts'
import { signOut } from '../data/server.ts'
import { followStale, isStale } from '../data/stale.ts'
import { text } from '../text/common.ts'
import { Button } from '../ui/button.tsx'
import { DialogButtons, Modal } from '../ui/dialog.tsx'
import { count } from '../ui/format.ts'
import { Logo } from '../ui/logo.tsx'
import menu from '../ui/menu.module.css'
import { ErrorState } from '../ui/parts.tsx'
import { Palette } from './palette.tsx'
import { allPlaces, homePlace, navigation, type Place } from './places.ts'
import { leave, useSession } from './session.tsx'
import style from './shell.module.css'
import { ShortcutHelp, useShortcuts } from './shortcuts.tsx'
import { setTheme, type Theme, useTheme } from './theme.ts'

export function Shell() {
  const [isFinding, setFinding] = useState(false)
  const [isHelping, setHelping] = useState(false)
  const [isOpen, setOpen] = useState(false)
  const { pathname } = useLocation()
  const opened = useRef(pathname)
  useEffect(() => {
    setOpen(false)
    // The row that was opened is gone, and the focus with it.
    if (opened.current !== pathname && document.activeElement === document.body)
      document.getElementById('content')?.focus({ preventScroll: true })
    opened.current = pathname
  }, [pathname])
  useShortcuts({ find: () => setFinding(true), help: () => setHelping(true) })
  const open = isOpen ? { 'data-open': '' } : {}
  return (
    <div className={style.app}>
      {/* biome-ignore lint/a11y/useValidAnchor: it leads to a place on the page, as its role says */}
      <a className={style.skip} href="#content" onClick={skip}>
        {text.skip}
      </a>
      <button type="button" aria-label={text.close} className={style.scrim} {...open} onClick={() => setOpen(false)} />
      <Navigation isOpen={isOpen} pathname={pathname} />
      <div>
        <header className={style.header}>
          <span className={style.burger}>
            <Button look="quiet" aria-label={text.openNavigation} onPress={() => setOpen(true)}>
              ☰
            </Button>
          </span>
          <Crumbs pathname={pathname} />
          <button type="button" className={style.find} onClick={() => setFinding(true)}>
            {text.search}
            <kbd>{navigator.platform.startsWith('Mac') ? text.searchKey.mac : text.searchKey.other}</kbd>
          </button>
        </header>
        <StaleBanner />
        <main id="content" className={style.content} tabIndex={-1}>
          <Outlet />
        </main>
      </div>
      <Palette isOpen={isFinding} onClose={() => setFinding(false)} />
      <ShortcutHelp isOpen={isHelping} onClose={() => setHelping(false)} />
    </div>
  )
}

/** The base of the page is another address, so the browser would leave the page. */
function skip(event: MouseEvent): void {
  event.preventDefault()
  document.getElementById('content')?.focus()
}

function StaleBanner() {
  const stale = useSyncExternalStore(followStale, isStale)
  return (
    <div role="status" className={stale ? style.banner : undefined}>
      {stale ? text.stale : ''}
    </div>
  )
}

/** Milliseconds. The requests of the page itself go first. */
const countAfter = 500

function Navigation({ isOpen, pathname }: { isOpen: boolean; pathname: string }) {
  const [isCounted, setCounted] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => setCounted(true), countAfter)
    return () => clearTimeout(timer)
  }, [])
  return (
    <nav className={style.nav} aria-label={text.navigation} {...(isOpen ? { 'data-open': '' } : {})}>
      <Link to="/" className={style.brand} activeOptions={{ exact: true }}>
        <Logo />
        {text.product}
      </Link>
      <NavLink place={homePlace} pathname={pathname} />
      {navigation.map(({ title, places }) => (
        <div key={title}>
          <h2>{title}</h2>
          <ul>
            {places.map(place => (
              <li key={place.to}>
                <NavLink place={place} pathname={pathname} isCounted={isCounted} />
              </li>
            ))}
          </ul>
        </div>
      ))}
      <div className={style.me}>
        <Me />
      </div>
    </nav>
  )
}

const belongsTo = (pathname: string, to: string): boolean => {
  if (to === '/') return pathname === '/'
  if (pathname === to || pathname.startsWith(`${to}/`)) return true
  if (to === '/secrets') return /^\/ns\/[^/]+\/secrets\//.test(pathname)
  if (to === '/project-secrets') return /^\/(projects\/[^/]+\/secrets|ns\/[^/]+\/project-secrets)\//.test(pathname)
  return false
}

type NavLinkProps = { readonly place: Place; readonly pathname: string; readonly isCounted?: boolean }

const NavLink = ({ place, pathname, isCounted = false }: NavLinkProps) => (
  <Link
    to={place.to}
    className={style.link}
    activeOptions={{ exact: true }}
    {...(belongsTo(pathname, place.to) ? { 'aria-current': 'page' as const } : {})}
  >
    {place.label}
    {place.kind && isCounted && <Count kind={place.kind} />}
  </Link>
)

/** How many there are. A kind that the caller may not list has no number. */
function Count({ kind }: { kind: Kind }) {
  const { data } = useQuery({
    queryKey: ['count', kind.id],
    queryFn: () => countOf(kind),
    staleTime: 60_000,
    refetchInterval: ({ state }) => (state.error ? false : 60_000),
    refetchOnWindowFocus: ({ state }) => state.error === null,
    retry: false,
  })
  return data === undefined ? null : (
    <span className={style.number} aria-hidden>
      {`${count(data.number)}${data.hasMore ? '+' : ''}`}
    </span>
  )
}

function Me() {
  const { user, teams } = useSession()
  const theme = useTheme()
  const navigate = useNavigate()
  const [problem, setProblem] = useState<unknown>()
  const close = () => setProblem(undefined)
  const act = (key: string) => {
    if (key === 'out' || key === 'everywhere') void leave(() => signOut(key === 'everywhere')).catch(setProblem)
    else if (key === 'sessions') void navigate({ to: '/keys', search: { q: 'Login' } })
    else setTheme(key as Theme)
  }
  return (
    <>
      <MenuTrigger>
        <RawButton>
          <b>{user}</b>
          {teams.length ? teams.map(text.team).join(', ') : text.noTeams}
        </RawButton>
        <Popover className={menu.popover ?? ''} placement="top start">
          <Menu className={menu.menu ?? ''} onAction={key => act(String(key))}>
            {(['system', 'light', 'dark'] as const).map(one => (
              <MenuItem key={one} id={one} className={menu.item ?? ''}>
                {`${text.theme}: ${text.themes[one]}${theme === one ? ' ✓' : ''}`}
              </MenuItem>
            ))}
            <Separator className={menu.line ?? ''} />
            <MenuItem id="sessions" className={menu.item ?? ''}>
              {text.yourSessions}
            </MenuItem>
            <MenuItem id="out" className={menu.item ?? ''}>
              {text.signOut}
            </MenuItem>
            <MenuItem id="everywhere" className={menu.item ?? ''}>
              {text.signOutEverywhere}
            </MenuItem>
          </Menu>
        </Popover>
      </MenuTrigger>
      <Modal title={text.signOut} isOpen={problem !== undefined} onClose={close}>
        <ErrorState error={problem} />
        <DialogButtons>
          <Button onPress={close}>{text.close}</Button>
        </DialogButtons>
      </Modal>
    </>
  )
}

function Crumbs({ pathname }: { pathname: string }) {
  const place = allPlaces.find(({ to }) => to !== '/' && belongsTo(pathname, to))
  const group = navigation.find(({ places }) => places.some(({ to }) => to === place?.to))
  const parts = pathname.split('/').filter(Boolean).map(decoded)
  const name = place && pathname !== place.to ? nameIn(parts, place.to) : undefined
  return (
    <div className={style.crumbs}>
      {group && group.title !== place?.label && <span>{`${group.title} / `}</span>}
      {place && name ? <Link to={place.to}>{place.label}</Link> : <b>{place?.label ?? text.home}</b>}
      {name && (
        <>
          {' / '}
          <b>{name}</b>
        </>
      )}
    </div>
  )
}

/** An address that somebody typed can have an invalid escape. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

/** What comes after the list: a name, or `namespace / name`. */
function nameIn(parts: readonly string[], to: string): string {
  if (parts[0] === 'ns' || parts[0] === 'projects') return `${parts[1]} / ${parts[3] ?? ''}`
  const kind = shownKinds.find(one => listPath(one) === to)
  return parts
    .slice(to.split('/').length - 1)
    .slice(0, kind?.namespaced ? 2 : 1)
    .join(' / ')
}
