// An access key: scope in plain words, last use, expiry, and both secrets during a rotation.

import type { Scope } from '../../api/caller.ts'
import type { Resource } from '../../api/object.ts'
import { keyExpiry } from '../../kinds/key-expiry.ts'
import { text } from '../text/common.ts'
import { keyText } from '../text/keys.tsx'
import { scopeSentences } from '../text/scope.ts'
import { ago, duration } from '../ui/format.ts'
import { Ago, Card, Columns, Facts, Note, Pill } from '../ui/parts.tsx'
import { MetadataCard } from './object-cards.tsx'
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
  const owner = spec.team ? text.team(spec.team) : (spec.user ?? spec.subject ?? '')
  return (
    <Columns side={<MetadataCard object={object} />}>
      {spec.disabled && <Note tone="warn">{keyText.disabled}</Note>}
      <Card title={keyText.scope}>
        {sentences.length === 0 ? (
          <p>{keyText.everything(owner)}</p>
        ) : (
          <ul>
            {sentences.map(sentence => (
              <li key={sentence}>{sentence}</li>
            ))}
          </ul>
        )}
      </Card>
      {status.keys && status.keys.length > 1 && <Rotation secrets={status.keys} />}
      <Card title={keyText.facts}>
        <Facts
          of={[
            [keyText.owner, owner],
            [keyText.type, spec.type],
            [keyText.description, spec.description],
            [keyText.extraGroups, spec.groups?.join(', ')],
            [keyText.lastUsed, status.lastActivity ? <Ago at={status.lastActivity} /> : text.never],
            [keyText.expires, Number.isFinite(expiry) ? <Ago at={expiry} /> : text.never],
            [keyText.lifetime, lifetimeOf(spec)],
            [keyText.provider, spec.identity?.connector],
            [keyText.groups, spec.identity?.groups?.join(', ')],
            [keyText.parent, spec.parent],
          ]}
        />
      </Card>
      {spec.scope && (
        <Card title={keyText.scopeAsWritten}>
          <Value value={spec.scope as never} schema={kind.spec?.properties?.['scope']} />
        </Card>
      )}
    </Columns>
  )
}

const lifetimeOf = ({ ttl, ttlAfterLastActivity = false }: KeySpec): string => {
  if (!ttl) return ''
  return ttlAfterLastActivity ? keyText.afterLastUse(duration(ttl)) : duration(ttl)
}

/** The new secret first. The old one must be unused before its end. */
function Rotation({ secrets: [fresh, old] }: { secrets: readonly Secret[] }) {
  if (!fresh || !old) return null
  // One client with the new key says nothing about the others: the old one must be unused since the rotation.
  const isOldUsed = old.lastActivity !== undefined && old.lastActivity > (fresh.since ?? '')
  const isSwitched = fresh.lastActivity !== undefined && !isOldUsed
  return (
    <Card title={keyText.rotation}>
      <Facts
        of={[
          [keyText.newKey, keyText.newKeyState(fresh.id, ago(fresh.lastActivity))],
          [keyText.oldKey, keyText.oldKeyState(old.id, ago(old.until), ago(old.lastActivity))],
        ]}
      />
      <p>
        {isSwitched ? (
          <Pill tone="ok">{keyText.isSwitched}</Pill>
        ) : (
          <Pill tone="warn">{isOldUsed ? keyText.isOldUsed(ago(old.lastActivity)) : keyText.isNotSwitched}</Pill>
        )}
      </p>
    </Card>
  )
}
