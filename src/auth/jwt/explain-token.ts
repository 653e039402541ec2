// Explains why a token is accepted or rejected: every check, not only the first that fails, without accepting the token.

import type { Caller } from '../../api/caller.ts'
import type { JsonObject } from '../../api/object.ts'
import type { MappedUser } from './claim-mapping.ts'
import { audiencesIn, checkSignature, claimChecks, type Issuer, JwtError, parse } from './verify.ts'

export type TokenCheck = {
  readonly check: string
  /** The expression or claim of a rule. */
  readonly rule?: string
  readonly passed: boolean
  /** Why it failed. Contains nothing of the token. */
  readonly message?: string
  /** If the issuer or the audience failed: the values of the token, and those that auth.yaml has. */
  readonly found?: readonly string[]
  readonly configured?: readonly string[]
}

export type TokenExplanation = {
  readonly accepted: boolean
  /** Name of the entry of auth.yaml. */
  readonly issuer?: string
  readonly checks: readonly TokenCheck[]
  /** The user that the claims give, also if another check failed. */
  readonly caller?: Caller
}

export type ExplainTokenOptions = {
  /** By URL. */
  readonly issuers: ReadonlyMap<string, Issuer>
  readonly now: () => number
  readonly callerOf: (issuer: Issuer, user: MappedUser, claims: JsonObject) => Caller
}

export async function explainToken(
  token: string,
  { issuers, now, callerOf }: ExplainTokenOptions,
): Promise<TokenExplanation> {
  const checks: TokenCheck[] = []
  const run = async <T>(check: string, work: () => T | Promise<T>, compared = {}): Promise<T | undefined> => {
    try {
      const result = await work()
      checks.push({ check, passed: true })
      return result
    } catch (error) {
      if (!(error instanceof JwtError)) throw error
      checks.push({ check, passed: false, message: error.message, ...compared })
      return undefined
    }
  }
  const parsed = await run('form', () => parse(token))
  if (!parsed) return { accepted: false, checks }
  const { id, algorithm, claims } = parsed
  const named = [claims['iss']].filter(one => typeof one === 'string')
  const matchIssuer = () => {
    const found = issuers.get(named[0] ?? '')
    if (!found) throw new JwtError('the issuer of the token is not configured on this server', true)
    return found
  }
  const issuer = await run('issuer', matchIssuer, { found: named, configured: [...issuers.keys()] })
  if (!issuer) return { accepted: false, checks }
  const { config } = issuer
  await run('signature', () => checkSignature(token, issuer, { id, algorithm }))
  const audiences = { found: audiencesIn(claims), configured: config.audiences }
  for (const [name, check] of Object.entries(claimChecks))
    await run(name, () => check(claims, config, now()), name === 'audience' ? audiences : {})
  let user: MappedUser | undefined
  for (const { name, rule, problem, user: mapped } of config.mapping.checks(claims)) {
    const verdict = problem === undefined ? { passed: true } : { passed: false, message: problem }
    checks.push({ check: name, ...(rule === undefined ? {} : { rule }), ...verdict })
    user ??= mapped
  }
  return {
    accepted: checks.every(({ passed }) => passed),
    issuer: config.name,
    checks,
    ...(user ? { caller: callerOf(issuer, withoutCount(user), claims) } : {}),
  }
}

function withoutCount({ username, uid, groups, extra }: MappedUser): MappedUser {
  return { username, groups, extra, ...(uid === undefined ? {} : { uid }) }
}
