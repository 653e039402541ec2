// A table of audit events.

import { Link } from '@tanstack/react-router'
import type { AuditEvent } from '../data/audit.ts'
import { kindByPlural, objectPath } from '../data/places.ts'
import { auditText } from '../text/audit.ts'
import { text } from '../text/common.ts'
import { dateTime } from '../ui/format.ts'
import { Pill } from '../ui/parts.tsx'
import style from './audit.module.css'

export function AuditTable({ events }: { events: readonly AuditEvent[] }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a wide table scrolls, and must do so with the keyboard
    <section className={style.frame} aria-label={auditText.table} tabIndex={0}>
      <table className={style.table}>
        <thead>
          <tr>
            <th scope="col">{auditText.columns.time}</th>
            <th scope="col">{auditText.columns.who}</th>
            <th scope="col">{auditText.columns.what}</th>
            <th scope="col">{auditText.columns.result}</th>
            <th scope="col">{auditText.columns.tool}</th>
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
        <time dateTime={stageTimestamp}>{dateTime(stageTimestamp)}</time>
      </td>
      <td>
        {user?.username ?? text.anonymous}
        {impersonatedUser?.username && <span className={style.quiet}> {auditText.as(impersonatedUser.username)}</span>}
      </td>
      <td>
        {isFailed ? auditText.triedTo(verb) : (auditText.did[verb] ?? verb)} <EventObject event={event} />
      </td>
      <td>
        <Pill tone={isDenied ? 'bad' : isFailed ? 'warn' : 'ok'}>
          {isDenied ? auditText.denied : isFailed ? auditText.failed(code) : auditText.done}
        </Pill>
        {isFailed && responseStatus?.message && <div className={style.quiet}>{responseStatus.message}</div>}
      </td>
      <td className={style.quiet}>
        {[key && auditText.key(key), userAgent?.split(' ')[0]].filter(Boolean).join(', ')}
      </td>
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
