// Exchanges a verified token of a machine for an access key: once per token, and no longer than the token (D67).

import { hash } from 'node:crypto'
import type { Caller } from '../../api/caller.ts'
import { ApiError, badRequest, unauthorized } from '../../api/errors.ts'
import type { JsonObject } from '../../api/object.ts'
import type { Resources } from '../../api/resources.ts'
import { isAgentSubject } from '../../kinds/cluster-desired.ts'
import { machineAnnotation, machineKeyKeptFor } from '../../kinds/machine-key.ts'
import { OwnedAccessKey } from '../../kinds/owned-access-key.ts'
import type { LoginStates } from '../sessions/login-states.ts'
import type { AcceptedToken, MachineTokens } from './machine-tokens.ts'
import { leeway } from './verify.ts'

export type ExchangedKey = {
  readonly secret: string
  /** Name of the key. */
  readonly name: string
  readonly issuer: string
  /** Seconds. */
  readonly ttl: number
}

/** `caller`: of a token that was just authenticated. Throws 401 if it ended, 400 if it was exchanged already or belongs to an agent, 429. */
export type ExchangeToken = (caller: Caller) => Promise<ExchangedKey>

export type ExchangeOptions = {
  readonly tokens: Pick<MachineTokens, 'tokenOf'>
  readonly states: Pick<LoginStates, 'claim' | 'take'>
  readonly resources: Resources
  readonly now: () => number
  /** Longest lifetime of an access key in seconds; undefined or 0: unlimited. */
  readonly maxKeyTTL?: number | undefined
}

/** Seconds. */
const longest = 3600
/** Used tokens of one issuer that have not expired, or whose keys exist. */
const maxUsed = 20_000

export function openExchange({ tokens, states, resources, now, maxKeyTTL }: ExchangeOptions): ExchangeToken {
  return async caller => {
    // The key would belong to the user of the claims, and lack the scope of the agent.
    if (isAgentSubject(caller.username))
      throw badRequest('an agent of a cluster gets no access key for its token: send the token itself')
    const token = tokens.tokenOf(caller)
    const ttl = token ? Math.min(longest, maxKeyTTL || longest, Math.floor((token.expires - now()) / 1000)) : 0
    // A key with ttl 0 would never expire.
    if (!token || ttl < 1) throw unauthorized('the token has expired')
    // By URL, so that a renamed entry does not forget them. One issuer cannot fill the cache of another.
    const purpose = `exchange-${hash('sha256', token.record.url, 'hex').slice(0, 16)}`
    const id = token.jti === undefined ? `digest ${token.digest}` : `jti ${token.jti}`
    // Until the token is rejected as expired and the key is deleted, so that maxUsed limits the keys, too.
    const kept = Math.ceil((token.expires - now()) / 1000) + leeway + 1 + machineKeyKeptFor
    if (!(await states.claim(purpose, id, { ttl: kept, max: maxUsed })))
      throw new ApiError(400, 'BadRequest', 'the token was exchanged already; request a new one')
    try {
      const { object } = await resources.create(OwnedAccessKey, '', keyFor(token, ttl), { fieldManager: 'platform' })
      const secret = String(object.spec?.['key'])
      return { secret, name: object.metadata.name ?? '', issuer: token.record.name, ttl }
    } catch (error) {
      // No key exists, so the machine may try again.
      await states.take(purpose, id)
      throw error
    }
  }
}

function keyFor({ record, username, groups, scope }: AcceptedToken, ttl: number): JsonObject {
  return {
    metadata: { generateName: 'machine-', annotations: { [machineAnnotation]: JSON.stringify(record) } },
    spec: {
      type: 'Other',
      displayName: `Token of ${record.name}`,
      user: username,
      groups: [...groups],
      ttl,
      ...(scope === undefined ? {} : { scope: scope as JsonObject }),
    },
  }
}
