// Sign-in of people and machines: loads auth.yaml, follows it, and opens its providers and issuers.

import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { Logger } from 'pino'
import { type IssuerConfig, type LoadedAuthConfig, loadAuthConfig } from '../auth/jwt/auth-config.ts'
import type { ReadFile } from '../auth/jwt/config-files.ts'
import { type IssuerKeys, openIssuerKeys } from '../auth/jwt/issuer-keys.ts'
import { type MachineTokens, type MachineTokensOptions, openMachineTokens } from '../auth/jwt/machine-tokens.ts'
import { mayGetGroup } from '../auth/jwt/provider-groups.ts'
import type { Providers } from '../auth/oidc/provider.ts'
import { openProviders } from '../auth/oidc/providers.ts'
import { UsageError } from '../host/command.ts'
import { followFiles } from '../host/follow-files.ts'
import { fileProblem, unreadable } from '../host/fs-errors.ts'
import type { Metrics } from '../serving/metrics.ts'
import { openThrottledLog } from '../serving/throttled-log.ts'
import { type HttpTimes, jsonOver, openIssuerHttp } from './issuer-http.ts'

export type SignInOptions = {
  /** The path of auth.yaml. */
  readonly file: string
  readonly metrics: Metrics
  readonly log: Logger
  readonly env: { readonly [name: string]: string | undefined }
  readonly now: () => number
  /** Time limits of requests to issuers and providers. */
  readonly times?: HttpTimes
}

export type SignIn = {
  /** The providers that people sign in with. */
  readonly providers: Providers
  readonly openTokens: (parts: Pick<MachineTokensOptions, 'teams' | 'changed'>) => MachineTokens
  /** Whether a user may get a group by signing in, or with a token. `issuers`: of linked identities. */
  mayGetGroup(username: string, issuers: readonly string[]): (group: string) => boolean
  /** Calls back after every reload. */
  onReload(callback: () => void): void
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

/** Largest documents of an issuer, and largest responses of a provider, which contain tokens with groups. */
const maxDocument = 256 * 1024
const maxResponse = 1024 * 1024

/** Throws UsageError if the file is invalid. */
export function openSignIn({ file, metrics, log, env, now, times }: SignInOptions): SignIn {
  let { issuers, logins, files } = readAuthConfig(file, env)
  const throttled = openThrottledLog(log, now)
  const reloads = metrics.counter('platform_auth_config_reloads_total', 'Reloads of auth.yaml, by result.')
  const verifications = metrics.counter('platform_jwt_verifications_total', 'Verified tokens, by issuer and result.')
  let tokens: MachineTokens | undefined
  const reloaded: (() => void)[] = []
  const openKeys = ({ name, url, discoveryURL, ca }: IssuerConfig, withdrawn: () => void): IssuerKeys => {
    const failed = throttled(`fetching the keys of issuer ${name}`)
    const http = openIssuerHttp({ url, ca, env, now, times, maxBytes: maxDocument })
    const { close } = http
    return openIssuerKeys({
      url,
      discoveryURL,
      fetchJson: jsonOver(http),
      close,
      now,
      failed,
      worked: failed.worked,
      withdrawn,
    })
  }
  const providers = openProviders({
    now,
    openHttp: ({ url, ca }) => openIssuerHttp({ url, ca, env, now, times, maxBytes: maxResponse }),
    watch: ({ name }) => {
      const failed = throttled(`contacting login provider ${name}`)
      return { failed, worked: failed.worked }
    },
    droppedGroups: (provider, count) => log.warn({ provider, count }, 'dropped reserved groups of a person'),
  })
  providers.use(logins)
  gaugeIssuers(metrics, () => tokens)
  const reload = () => {
    try {
      const next = readAuthConfig(file, env)
      ;({ issuers, logins, files } = next)
      tokens?.use(issuers)
      providers.use(logins)
      for (const callback of reloaded) callback()
      reloads({ result: 'success' })(1)
      log.info({ file, providers: logins.length, issuers: issuers.length }, 'auth config reloaded')
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
    providers,
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
    mayGetGroup: (username, linked) => mayGetGroup({ logins, issuers }, username, linked),
    onReload: callback => void reloaded.push(callback),
    stop() {
      stopFollowing()
      providers.stop()
    },
  }
}

function filesIn(file: string, env: Env): readonly string[] {
  try {
    return load(file, env).files
  } catch {
    return [file]
  }
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
