// Small parts that every page uses: page head, cards, facts, states, tabs, commands and copying.

import { Link } from '@tanstack/react-router'
import { type ReactNode, useEffect, useState, useSyncExternalStore } from 'react'
import { ApiError } from '../../api/errors.ts'
import { text } from '../text/common.ts'
import { Button } from './button.tsx'
import { ago, dateTime } from './format.ts'
import { shownText } from './jsx-runtime.ts'
import style from './parts.module.css'

type Tone = 'ok' | 'warn' | 'bad' | 'plain'

type PageProps = {
  readonly title: string
  /** Beside the title. */
  readonly state?: ReactNode
  readonly sub?: ReactNode
  readonly actions?: ReactNode
  readonly children: ReactNode
}

function useTitle(title: string | undefined): void {
  useEffect(() => {
    if (title !== undefined) document.title = shownText(`${title} · ${text.product}`)
  }, [title])
}

export function Page({ title, state, sub, actions, children }: PageProps) {
  useTitle(title)
  return (
    <div className={style.page}>
      <div className={style.head}>
        <div>
          <h1>
            {title} {state}
          </h1>
          {sub && <p className={style.sub}>{sub}</p>}
        </div>
        {actions && <div className={style.actions}>{actions}</div>}
      </div>
      {children}
    </div>
  )
}

export const Card = ({ title, children }: { title?: ReactNode; children: ReactNode }) => (
  <section className={style.card}>
    {title && <h2>{title}</h2>}
    {children}
  </section>
)

/** Rows without a value are left out. */
export const Facts = ({ of }: { of: readonly (readonly [label: string, value: ReactNode])[] }) => (
  <dl className={style.facts}>
    {of
      .filter(([, value]) => value !== undefined && value !== '' && value !== null && value !== false)
      .map(([label, value], index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the same user can be listed twice
        <FactRow key={`${index} ${label}`} label={label} value={value} />
      ))}
  </dl>
)

const FactRow = ({ label, value }: { label: string; value: ReactNode }) => (
  <>
    <dt>{label}</dt>
    <dd>{value}</dd>
  </>
)

const tick = 10_000
const ticking = new Set<() => void>()
setInterval(() => {
  for (const changed of ticking) changed()
}, tick)
const followTime = (changed: () => void) => {
  ticking.add(changed)
  return () => ticking.delete(changed)
}

/** How long ago, with the local date as its title. */
export function Ago({ at }: { at: string | number | undefined }) {
  const shown = useSyncExternalStore(followTime, () => ago(at))
  return <time title={dateTime(at)}>{shown}</time>
}

export const Pill = ({ tone = 'plain', children }: { tone?: Tone; children: ReactNode }) => (
  <span className={`${style.pill} ${tone === 'plain' ? '' : style[tone]}`}>{children}</span>
)

export const Note = ({ tone = 'plain', children }: { tone?: 'plain' | 'warn' | 'bad'; children: ReactNode }) => (
  <div className={`${style.note} ${tone === 'warn' ? style.noteWarn : tone === 'bad' ? style.noteBad : ''}`}>
    {children}
  </div>
)

export const Columns = ({ children, side }: { children: ReactNode; side: ReactNode }) => (
  <div className={style.columns}>
    <div className={style.stack}>{children}</div>
    <aside className={style.stack}>{side}</aside>
  </div>
)

export const Stack = ({ children }: { children: ReactNode }) => <div className={style.stack}>{children}</div>

/** Empty, loading, forbidden and failed: designed, with what to do. */
export function State({ title, isPage, children }: { title: string; isPage?: boolean; children?: ReactNode }) {
  useTitle(isPage ? title : undefined)
  return (
    <div className={style.state}>
      {isPage ? <h1>{title}</h1> : <h2>{title}</h2>}
      {children}
    </div>
  )
}

export const Loading = () => (
  <div className={style.state} role="status">
    {text.loading}
  </div>
)

type ErrorStateProps = {
  readonly error: unknown
  readonly retry?: () => void
  readonly isPage?: boolean
  readonly children?: ReactNode
}

/** `isPage`: there is nothing else on the page. */
export function ErrorState({ error, retry, isPage = false, children }: ErrorStateProps) {
  const { code, message } = problemOf(error)
  const title = code === 403 ? text.forbidden : code === 404 ? text.notFound : text.failed
  return (
    <State title={title} isPage={isPage}>
      <p>{message}</p>
      {retry && code !== 403 && code !== 404 && <Button onPress={retry}>{text.retry}</Button>}
      {children}
    </State>
  )
}

/** The code and message of any error. */
export function problemOf(error: unknown): { readonly code: number; readonly message: string } {
  if (error instanceof ApiError) return { code: error.code, message: error.message }
  return { code: 0, message: error instanceof Error ? error.message : String(error) }
}

export type Tab = { readonly name: string; readonly label: string; readonly to: string }

export const Tabs = ({ tabs, current }: { tabs: readonly Tab[]; current: string }) => (
  <nav className={style.tabs} aria-label={text.sections}>
    {tabs.map(({ name, label, to }) => (
      <Link
        key={name}
        to={to}
        activeOptions={{ exact: true }}
        {...(name === current ? { 'aria-current': 'page' as const } : {})}
      >
        {label}
      </Link>
    ))}
  </nav>
)

export const Command = ({ children }: { children: string }) => (
  <div className={style.command} role="group" aria-label={text.command}>
    {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a long command scrolls, and must do so with the keyboard */}
    <code tabIndex={0}>{children}</code>
    <CopyButton value={children} />
  </div>
)

/** Says whether copying worked. Browsers without the clipboard API use the selection. */
export function CopyButton({ value, label = text.copy }: { value: string; label?: string }) {
  const [result, setResult] = useState<'done' | 'failed' | undefined>()
  const copy = async () => {
    const done = await copyText(value)
    setResult(done ? 'done' : 'failed')
    setTimeout(setResult, done ? 2000 : 8000, undefined)
  }
  return (
    <span className={style.copy}>
      <span role="status">{result === 'failed' ? text.copyFailed : ''}</span>
      <Button look="quiet" onPress={() => void copy()}>
        {result === 'done' ? text.copied : label}
      </Button>
    </span>
  )
}

async function copyText(value: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(value)
    return true
  } catch {
    return copySelection(value)
  }
}

function copySelection(value: string): boolean {
  const field = document.createElement('textarea')
  field.value = value
  document.body.append(field)
  field.select()
  try {
    return document.execCommand('copy')
  } finally {
    field.remove()
  }
}
