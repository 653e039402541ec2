// Home: what needs attention. Keys that expire, failed conditions, recent denials.

import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { ApiError } from '../../api/errors.ts'
import type { Resource } from '../../api/object.ts'
import { pathOf } from '../../api/paths.ts'
import { useSession } from '../app/session.tsx'
import { statusCommand } from '../data/commands.ts'
import { kindNamed, objectPath, oneOf, shownKinds } from '../data/places.ts'
import { getJson } from '../data/server.ts'
import { text } from '../text/common.ts'
import { homeText } from '../text/home.ts'
import { ago } from '../ui/format.ts'
import { Ago, Card, Command, Page, Pill } from '../ui/parts.tsx'
import { conditionsOf } from './conditions.tsx'
import style from './home.module.css'
import { expiryOf } from './key-overview.tsx'

const soon = 14 * 86_400_000
const pageSize = 500
const maxShown = 8

export function HomePage() {
  const { user, teams } = useSession()
  return (
    <Page title={homeText.hello(user)} sub={homeText.teams(teams)}>
      <div className={style.grid}>
        <ExpiringKeys />
        <FailedConditions />
        <Denials />
      </div>
      <Command>{statusCommand}</Command>
    </Page>
  )
}

type FirstPage = { readonly items: readonly Resource[]; readonly isCut: boolean }

/** The first page of a kind. Secrets come without their data. */
async function firstPage(plural: string): Promise<FirstPage> {
  const kind = shownKinds.find(one => one.plural === plural)
  if (!kind) return { items: [], isCut: false }
  const { items, metadata } = await getJson<{
    readonly items: readonly Resource[]
    readonly metadata: { readonly continue?: string }
  }>(`${pathOf(kind, {})}?limit=${pageSize}&omitData=true`)
  return { items, isCut: Boolean(metadata.continue) }
}

/** Of several kinds. A kind that the caller may not list does not hide the others. */
async function firstPages(plurals: readonly string[]): Promise<FirstPage> {
  const read = await Promise.allSettled(plurals.map(firstPage))
  const pages = read.flatMap(one => (one.status === 'fulfilled' ? [one.value] : []))
  const [failed] = read.flatMap(one => (one.status === 'rejected' ? [one.reason as unknown] : []))
  if (pages.length === 0) throw failed
  return { items: pages.flatMap(({ items }) => items), isCut: pages.some(({ isCut }) => isCut) }
}

type SectionProps = {
  readonly title: string
  readonly error: unknown
  readonly isPending: boolean
  readonly nothing: string
  readonly rows: readonly ReactNode[]
  /** Whether there are objects that were not read. */
  readonly isCut?: boolean
  readonly more?: ReactNode
}

function Section({ title, error, isPending, nothing, rows, isCut = false, more }: SectionProps) {
  const isForbidden = error instanceof ApiError && (error.code === 403 || error.code === 404 || error.code === 503)
  return (
    <Card title={title}>
      {isPending && <p className={style.quiet}>…</p>}
      {error !== null && <p className={style.quiet}>{isForbidden ? error.message : homeText.notLoaded}</p>}
      {!isPending && error === null && rows.length === 0 && !isCut && <p className={style.quiet}>{nothing}</p>}
      {rows.length > 0 && <ul className={style.list}>{rows}</ul>}
      {isCut && <p className={style.quiet}>{homeText.onlyFirst(pageSize)}</p>}
      {more}
    </Card>
  )
}

function ExpiringKeys() {
  const { data, error, isPending } = useQuery({
    queryKey: ['home', 'keys'],
    queryFn: () => firstPage('ownedaccesskeys'),
    refetchInterval: 60_000,
  })
  const kind = kindNamed('OwnedAccessKey')
  const now = Date.now()
  const rows = (data?.items ?? [])
    .filter(({ spec }) => spec?.['type'] !== 'Login')
    .map(key => ({ key, expiry: expiryOf(key) }))
    .filter(({ expiry }) => expiry < now + soon)
    .toSorted((one, other) => one.expiry - other.expiry)
    .slice(0, maxShown)
    .map(({ key: { metadata }, expiry }) => (
      <li key={metadata.uid} className={style.row}>
        {kind && <Link to={objectPath(kind, { namespace: '', name: metadata.name ?? '' })}>{metadata.name}</Link>}
        <Pill tone={expiry < now ? 'bad' : 'warn'}>
          {expiry < now ? homeText.expired : homeText.expires(ago(expiry))}
        </Pill>
      </li>
    ))
  return (
    <Section
      title={homeText.keys}
      error={error}
      isPending={isPending}
      rows={rows}
      isCut={data?.isCut ?? false}
      nothing={homeText.noKeys}
    />
  )
}

const watched = ['teams', 'sharedsecrets', 'projectsecrets', 'clusters']

function FailedConditions() {
  const { data, error, isPending } = useQuery({
    queryKey: ['home', 'conditions'],
    queryFn: () => firstPages(watched),
    refetchInterval: 60_000,
  })
  const rows = (data?.items ?? [])
    .flatMap(object => {
      const failed = conditionsOf(object).filter(({ status }) => status === 'False')
      // Ready repeats the condition that failed.
      const condition = failed.find(({ type }) => type !== 'Ready') ?? failed[0]
      return condition ? [{ object, condition }] : []
    })
    .slice(0, maxShown)
    .map(({ object: { kind: name, metadata }, condition }) => {
      const kind = kindNamed(name)
      const ref = { namespace: metadata.namespace ?? '', name: metadata.name ?? '' }
      return (
        <li key={`${metadata.uid} ${condition.type}`} className={style.row}>
          <span>
            {kind ? <Link to={objectPath(kind, ref)}>{ref.name}</Link> : ref.name}{' '}
            <span className={style.quiet}>{kind && oneOf(kind)}</span>
          </span>
          <Pill tone="bad">{condition.reason || condition.type}</Pill>
        </li>
      )
    })
  return (
    <Section
      title={homeText.conditions}
      error={error}
      isPending={isPending}
      rows={rows}
      isCut={data?.isCut ?? false}
      nothing={homeText.noConditions}
    />
  )
}

type AuditList = {
  readonly items: readonly {
    readonly metadata: { readonly uid: string }
    readonly verb: string
    readonly user?: { readonly username?: string }
    readonly objectRef?: { readonly resource?: string; readonly name?: string }
    readonly stageTimestamp?: string
  }[]
}

/** Without lists: pages of the console list what a user may not see, and nobody asked for it. */
function Denials() {
  const { data, error, isPending } = useQuery({
    queryKey: ['home', 'denials'],
    queryFn: () =>
      getJson<AuditList>(
        `/apis/management.platform.sh/v1/auditevents?limit=${maxShown}&fieldSelector=${encodeURIComponent('code=403,verb!=list,verb!=watch')}`,
      ),
    refetchInterval: 60_000,
  })
  const rows = (data?.items ?? []).map(({ metadata, verb, user, objectRef, stageTimestamp }) => (
    <li key={metadata.uid} className={style.row}>
      <span>
        {homeText.denial(
          user?.username ?? text.anonymous,
          verb,
          [objectRef?.resource, objectRef?.name].filter(Boolean).join(' '),
        )}
      </span>
      <span className={style.quiet}>
        <Ago at={stageTimestamp} />
      </span>
    </li>
  ))
  return (
    <Section
      title={homeText.denials}
      error={error}
      isPending={isPending}
      rows={rows}
      nothing={homeText.noDenials}
      more={
        <p>
          <Link to="/audit" search={{ code: '403', reads: 'true' }}>
            {homeText.allDenials}
          </Link>
        </p>
      }
    />
  )
}
