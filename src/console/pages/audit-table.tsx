// A table of audit events.

import { Link } from '@tanstack/react-router'
import type { AuditEvent } from '../data/audit.ts'
import { kindByPlural, objectPath } from '../data/places.ts'
import { dateTime } from '../ui/format.ts'
import { Pill } from '../ui/parts.tsx'
import style from './audit.module.css'

const past: { readonly [verb: string]: string } = {
  get: 'read',
  list: 'listed',
  watch: 'watched',
  create: 'created',
  update: 'replaced',
  patch: 'changed',
  delete: 'deleted',
  deletecollection: 'deleted',
}

export function AuditTable({ events }: { events: readonly AuditEvent[] }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a wide table scrolls, and must do so with the keyboard
    <section className={style.frame} aria-label="Events" tabIndex={0}>
      <table className={style.table}>
        <thead>
          <tr>
            <th scope="col">Time</th>
            <th scope="col">Who</th>
            <th scope="col">What</th>
            <th scope="col">Result</th>
            <th scope="col">With</th>
          </tr>
        </thead>
        <tbody>
          {events.map(event => (
            <EventRow key={event.metadata.uid} event={event} />
          ))}
        </tbody>
      </table>
    </section>
  )
}

function EventRow({ event }: { event: AuditEvent }) {
  const { stageTimestamp, user, impersonatedUser, verb, responseStatus, annotations, userAgent } = event
  const code = responseStatus?.code ?? 0
  const isDenied = code === 401 || code === 403
  const isFailed = code >= 400
  const key = annotations?.['platform.sh/access-key']
  return (
    <tr>
      <td>
        <time title={stageTimestamp}>{dateTime(stageTimestamp)}</time>
      </td>
      <td>
        {user?.username ?? 'anonymous'}
        {impersonatedUser?.username && <span className={style.quiet}> as {impersonatedUser.username}</span>}
      </td>
      <td>
        {isFailed ? `tried to ${verb}` : (past[verb] ?? verb)} <EventObject event={event} />
      </td>
      <td>
        <Pill tone={isDenied ? 'bad' : isFailed ? 'warn' : 'ok'}>
          {isDenied ? 'denied' : isFailed ? `failed, ${code}` : 'done'}
        </Pill>
        {isFailed && responseStatus?.message && <div className={style.quiet}>{responseStatus.message}</div>}
      </td>
      <td className={style.quiet}>{[key && `key ${key}`, userAgent?.split(' ')[0]].filter(Boolean).join(', ')}</td>
    </tr>
  )
}

function EventObject({ event: { objectRef, requestURI } }: { event: AuditEvent }) {
  if (!objectRef?.resource) return <code>{requestURI?.split('?')[0]}</code>
  const { resource, subresource, namespace = '', name = '' } = objectRef
  const kind = kindByPlural(resource)
  const label = [resource, subresource].filter(Boolean).join('/')
  const shown = [namespace, name].filter(Boolean).join('/')
  return (
    <>
      {label} {kind && name ? <Link to={objectPath(kind, { namespace, name })}>{shown}</Link> : shown}
    </>
  )
}
