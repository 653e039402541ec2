// Sign-in with tokens of external issuers: loads auth.yaml, follows it, and fetches the keys of its issuers.

import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { Logger } from 'pino'
import { ApiError } from '../api/errors.ts'
import type { Json } from '../api/object.ts'
import { type IssuerConfig, type LoadedAuthConfig, loadAuthConfig } from '../auth/jwt/auth-config.ts'
import type { ReadFile } from '../auth/jwt/config-files.ts'
import { type IssuerKeys, openIssuerKeys } from '../auth/jwt/issuer-keys.ts'
import { type MachineTokens, type MachineTokensOptions, openMachineTokens } from '../auth/jwt/machine-tokens.ts'
import { UsageError } from '../host/command.ts'
import { followFiles } from '../host/follow-files.ts'
import { fileProblem, unreadable } from '../host/fs-errors.ts'
import type { Metrics } from '../serving/metrics.ts'
import { openThrottledLog } from '../serving/throttled-log.ts'
import { openTransport } from '../transport/transport.ts'

export type SignInOptions = {
  /** The path of auth.yaml. */
  readonly file: string
  readonly metrics: Metrics
  readonly log: Logger
  readonly env: { readonly [name: string]: string | undefined }
  readonly now: () => number
}

export type SignIn = {
  readonly openTokens: (parts: Pick<MachineTokensOptions, 'teams' | 'changed'>) => MachineTokens
  stop(): void
}

type Env = SignInOptions['env']

/** Throws UsageError with everything that is wrong with the file and the files that it names. */
export function readAuthConfig(file: string, env: Env): Omit<LoadedAuthConfig, 'problems'> {
  const { problems, ...config } = load(file, env)
  if (problems.length)
    throw new UsageError(problems.map(({ line, column, message }) => `${file}:${line}:${column}: ${message}`))
  return config
}

function load(file: string, env: Env): LoadedAuthConfig {
  const bytes = readBytes(file)
  const loaded = loadAuthConfig(bytes, readWith(file), env)
  return { ...loaded, files: [file, ...loaded.files.map(one => resolve(dirname(file), one))] }
}

function readBytes(file: string): Uint8Array {
  try {
    return readFileSync(file)
  } catch (error) {
    throw unreadable(file, error)
  }
}

const readWith =
  (file: string): ReadFile =>
  name => {
    const path = resolve(dirname(file), name)
    try {
      return { text: readFileSync(path, 'utf8') }
    } catch (error) {
      return { problem: fileProblem(path, error) }
    }
  }

/** Throws UsageError if the file is invalid. */
export function openSignIn({ file, metrics, log, env, now }: SignInOptions): SignIn {
  let { issuers, files } = readAuthConfig(file, env)
  const throttled = openThrottledLog(log, now)
  const reloads = metrics.counter('platform_auth_config_reloads_total', 'Reloads of auth.yaml, by result.')
  const verifications = metrics.counter('platform_jwt_verifications_total', 'Verified tokens, by issuer and result.')
  let tokens: MachineTokens | undefined
  const openKeys = ({ name, url, discoveryURL, ca }: IssuerConfig, withdrawn: () => void): IssuerKeys => {
    const failed = throttled(`fetching the keys of issuer ${name}`)
    const { fetchJson, close } = openFetch({ url, ca, env, now })
    return openIssuerKeys({ url, discoveryURL, fetchJson, close, now, failed, worked: failed.worked, withdrawn })
  }
  gaugeIssuers(metrics, () => tokens)
  const reload = () => {
    try {
      const next = readAuthConfig(file, env)
      issuers = next.issuers
      files = next.files
      tokens?.use(issuers)
      reloads({ result: 'success' })(1)
      log.info({ file, issuers: issuers.length }, 'auth config reloaded')
    } catch (error) {
      // An invalid configuration may name a file that is missing, so it is followed too.
      files = [...new Set([...files, ...filesIn(file, env)])]
      reloads({ result: 'failure' })(1)
      const problems = error instanceof UsageError ? error.problems : [String(error)]
      log.error({ file, problems }, 'auth config reload failed, keeping previous')
    }
  }
  const stopFollowing = followFiles({ files: () => files, changed: reload })
  return {
    openTokens(parts) {
      tokens = openMachineTokens({
        ...parts,
        now,
        openKeys,
        verified: (issuer, isValid) => verifications({ issuer, result: isValid ? 'valid' : 'invalid' })(1),
        droppedGroups: (issuer, count) =>
          log.warn({ issuer, count }, 'dropped groups of a token that start with system: or platform:'),
      })
      tokens.use(issuers)
      return tokens
    },
    stop: stopFollowing,
  }
}

function filesIn(file: string, env: Env): readonly string[] {
  try {
    return load(file, env).files
  } catch {
    return [file]
  }
}

const answerWithin = 10_000
const maxDocument = 256 * 1024

type FetchOptions = Pick<IssuerConfig, 'url' | 'ca'> & Pick<SignInOptions, 'env' | 'now'>

function openFetch({ url, ca, env, now }: FetchOptions) {
  const transport = openTransport(
    { server: url, namespace: '', insecure: false, ...(ca === undefined ? {} : { ca: { text: ca } }) },
    { env, now, answerWithin, quietFor: answerWithin, maxBytes: maxDocument, caIs: 'issuer.certificateAuthority' },
  )
  const fetchJson = async (address: string): Promise<Json> => {
    const response = await transport.fetch(address, { headers: { Accept: 'application/json' } })
    if (!response.ok) throw new ApiError(response.status, 'Issuer', `${address} returned ${response.status}`)
    try {
      return JSON.parse(await response.text()) as Json
    } catch {
      throw new ApiError(422, 'Issuer', `${address} did not return JSON`)
    }
  }
  return { fetchJson, close: transport.close }
}

function gaugeIssuers(metrics: Metrics, tokens: () => MachineTokens | undefined): void {
  const each = (read: (keys: IssuerKeys) => number | undefined) => () =>
    (tokens()?.issuers() ?? []).flatMap(({ config: { name }, keys }) => {
      const value = read(keys)
      return value === undefined ? [] : [[{ issuer: name }, value] as const]
    })
  metrics.gauge(
    'platform_jwt_issuer_keys_age_seconds',
    'Seconds since the keys of an issuer were fetched. Absent before the first success.',
    each(keys => {
      const age = keys.age()
      return age === undefined ? undefined : age / 1000
    }),
  )
  metrics.readCounter(
    'platform_jwt_issuer_fetch_failures_total',
    'Failed fetches of the keys of an issuer.',
    each(keys => keys.failures),
  )
}
