// An access key: scope in plain words, last use, expiry, and both secrets during a rotation.

import type { Scope } from '../../api/caller.ts'
import type { Resource } from '../../api/object.ts'
import { keyExpiry } from '../../kinds/key-expiry.ts'
import { text } from '../text.ts'
import { ago, dateTime, duration } from '../ui/format.ts'
import { Card, Columns, Facts, Note, Pill } from '../ui/parts.tsx'
import { MetadataCard } from './object-cards.tsx'
import { scopeSentences } from './scope-words.ts'
import type { TabProps } from './tab.ts'
import { Value } from './value.tsx'

type KeySpec = {
  readonly user?: string
  readonly team?: string
  readonly subject?: string
  readonly description?: string
  readonly groups?: readonly string[]
  readonly disabled?: boolean
  readonly ttl?: number
  readonly ttlAfterLastActivity?: boolean
  readonly scope?: Scope
  readonly type?: string
  readonly parent?: string
  readonly identity?: { readonly connector?: string; readonly email?: string; readonly groups?: readonly string[] }
}

type Secret = { readonly id: string; readonly since?: string; readonly until?: string; readonly lastActivity?: string }
type KeyStatus = { readonly lastActivity?: string; readonly rotatedAt?: string; readonly keys?: readonly Secret[] }

/** In milliseconds; Infinity: never. */
export function expiryOf({ metadata, spec, status }: Resource): number {
  const { ttl, ttlAfterLastActivity = false } = (spec ?? {}) as KeySpec
  const { rotatedAt, lastActivity } = (status ?? {}) as KeyStatus
  const since = Date.parse(rotatedAt ?? metadata.creationTimestamp ?? '')
  return keyExpiry({ since, ttl: ttl ? ttl * 1000 : undefined, slides: ttlAfterLastActivity }, () =>
    lastActivity === undefined ? undefined : Date.parse(lastActivity),
  )
}

export function KeyOverview({ kind, object }: TabProps) {
  const spec = (object.spec ?? {}) as KeySpec
  const status = (object.status ?? {}) as KeyStatus
  const sentences = scopeSentences(spec.scope)
  const expiry = expiryOf(object)
  const owner = spec.team ? `team ${spec.team}` : (spec.user ?? spec.subject ?? '')
  return (
    <Columns side={<MetadataCard object={object} />}>
      {spec.disabled && <Note tone="warn">This key is disabled. It does not grant access.</Note>}
      <Card title="What it may do">
        {sentences.length === 0 ? (
          <p>Everything that {owner} may do.</p>
        ) : (
          <ul>
            {sentences.map(sentence => (
              <li key={sentence}>{sentence}</li>
            ))}
          </ul>
        )}
      </Card>
      {status.keys && status.keys.length > 1 && <Rotation secrets={status.keys} />}
      <Card title="Facts">
        <Facts
          of={[
            ['Acts as', owner],
            ['Type', spec.type],
            ['Description', spec.description],
            ['Extra groups', spec.groups?.join(', ')],
            [
              'Last used',
              status.lastActivity ? (
                <time title={dateTime(status.lastActivity)}>{ago(status.lastActivity)}</time>
              ) : (
                text.never
              ),
            ],
            [
              'Expires',
              Number.isFinite(expiry) ? (
                <time title={dateTime(new Date(expiry).toISOString())}>{ago(expiry)}</time>
              ) : (
                text.never
              ),
            ],
            [
              'Lifetime',
              spec.ttl ? `${duration(spec.ttl)}${spec.ttlAfterLastActivity ? ' after the last use' : ''}` : undefined,
            ],
            ['Signed in with', spec.identity?.connector],
            ['Groups', spec.identity?.groups?.join(', ')],
            ['Made with', spec.parent],
          ]}
        />
      </Card>
      {spec.scope && (
        <Card title="Scope as written">
          <Value value={spec.scope as never} schema={kind.spec?.properties?.['scope']} />
        </Card>
      )}
    </Columns>
  )
}

/** The new secret first. The old one must be unused before its end. */
function Rotation({ secrets: [fresh, old] }: { secrets: readonly Secret[] }) {
  if (!fresh || !old) return null
  const isSwitched = fresh.lastActivity !== undefined && (old.lastActivity ?? '') <= fresh.lastActivity
  return (
    <Card title="A rotation is running">
      <Facts
        of={[
          [
            'New key',
            <>
              <code>{fresh.id}</code>, {fresh.lastActivity ? `last used ${ago(fresh.lastActivity)}` : 'not used yet'}
            </>,
          ],
          [
            'Old key',
            <>
              <code>{old.id}</code>, ends {ago(old.until)},{' '}
              {old.lastActivity ? `last used ${ago(old.lastActivity)}` : 'not used'}
            </>,
          ],
        ]}
      />
      <p>
        {isSwitched ? (
          <Pill tone="ok">clients use the new key</Pill>
        ) : (
          <Pill tone="warn">clients still use the old key</Pill>
        )}
      </p>
    </Card>
  )
}
