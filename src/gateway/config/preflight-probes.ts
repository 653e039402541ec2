// The network checks of `platform gateway --check`: the issuer, the management API and the clusters, with the gateway's credentials.

import { dirname, resolve } from 'node:path'
import type { Scope } from '../../api/caller.ts'
import { ApiError } from '../../api/errors.ts'
import { isObject, type Json } from '../../api/object.ts'
import { connect } from '../../client/connect.ts'
import type { Io } from '../../host/command.ts'
import { SelfSubjectAccessReview, SelfSubjectReview } from '../../kinds/self-reviews.ts'
import { TokenRevocation } from '../../kinds/token-revocation.ts'
import type { Access } from '../../transport/cluster-config.ts'
import { openTransport } from '../../transport/transport.ts'
import type { Service } from '../auth/control-plane.ts'
import { isAboutCertificates } from '../proxy/backend.ts'
import type { GatewayConfig } from './schema.ts'

/** `unreachable`: targets that may respond later. */
export type PreflightReport = {
  readonly problems: string[]
  readonly warnings: string[]
  readonly unreachable: string[]
}
type ConfigFile = { readonly config: GatewayConfig; readonly file: string }
type Failure = Error & { readonly cause?: unknown }

export const isUnreachable = (error: unknown) => !(error instanceof ApiError) || error.code >= 500 || error.code === 429
export const isUntrusted = ({ cause }: Failure) =>
  isAboutCertificates(String((cause as { code?: string } | undefined)?.code))

export async function probeIssuer(
  service: Service,
  { config, file }: ConfigFile,
  { problems, unreachable }: PreflightReport,
): Promise<void> {
  const record = (setting: string) => (error: Failure) => {
    const list = isUnreachable(error) && !isUntrusted(error) ? unreachable : problems
    list.push(`${file}: ${isUnreachable(error) ? 'issuer' : setting}: ${error.message}`)
  }
  const wrong = issuerMismatch(config, (await service.fetchMetadata().catch(record('issuer.url'))) ?? undefined)
  if (wrong) problems.push(`${file}: ${wrong}`)
  const keys = await service.fetchKeys().catch(record('issuer.keySet'))
  if (keys !== undefined && !(isObject(keys) && Array.isArray(keys['keys']) && keys['keys'].length))
    problems.push(`${file}: issuer.keySet: the issuer returned no keys, so every token would be invalid`)
}

/** The problem if the issuer's metadata has another issuer name; undefined: none, or no metadata. */
export function issuerMismatch({ issuer }: GatewayConfig, metadata: Json | undefined): string | undefined {
  if (metadata === undefined) return undefined
  const named = isObject(metadata) ? metadata['issuer'] : undefined
  if (named === issuer?.url) return undefined
  return `issuer.url: the issuer at ${issuer?.url} identifies itself as ${JSON.stringify(named)?.slice(0, 256)}, so its tokens would be invalid: set issuer.url to the base URL of the management API`
}

export async function probeService(
  service: Service,
  { config, file }: ConfigFile,
  report: PreflightReport,
): Promise<void> {
  const { problems, warnings, unreachable } = report
  const keyFile = resolve(dirname(file), config.service?.keyFile ?? '')
  const record = async (error: Failure) => {
    if (isUnreachable(error)) (isUntrusted(error) ? problems : unreachable).push(`${file}: service: ${error.message}`)
    else if ((error as ApiError).code === 401)
      problems.push(
        `${file}: service.keyFile: the management API rejected the access key in ${keyFile}: ${error.message}`,
      )
    else if ((error as ApiError).code === 403)
      problems.push(`${file}: service.keyFile: ${await refusalOf(service, keyFile, error as ApiError)}`)
    else problems.push(`${file}: service: ${error.message}`)
  }
  const isFollowed = await service.resources
    .list(TokenRevocation, { limit: 1 })
    .then(() => true)
    .catch(record)
  if (!isFollowed) return
  const own = await service.reviewSelf().catch(record)
  if (own && !hasOnlyAgentRole(own.caller.scope))
    warnings.push(
      `${file}: service.keyFile: the access key in ${keyFile} has more permissions than a gateway needs: limit its scope to the role agent`,
    )
}

/** Either the key's scope is too narrow, or its user lacks the role. */
async function refusalOf(service: Service, keyFile: string, { message, details }: ApiError): Promise<string> {
  if (details?.causes?.some(({ reason }) => reason === 'KeyScopeDenied'))
    return `the scope of the access key in ${keyFile} is too narrow for a gateway: ${message}; use a key with the scope role agent`
  const user = await userOf(service)
  return `the user of the access key in ${keyFile} does not have the role platform-gateway: ${message}; to grant it, run kubectl create clusterrolebinding gateway --clusterrole=platform-gateway --user=${user ?? 'USER'}`
}

async function userOf({ resources }: Service): Promise<string | undefined> {
  const user = await resources.create(SelfSubjectReview, '', {}).then(
    ({ object }) => (object.status as { readonly userInfo?: { readonly username?: string } }).userInfo?.username,
    () => undefined,
  )
  // It becomes part of a command that people paste.
  return user !== undefined && /^[\w.@:-]+$/.test(user) ? user : undefined
}

const hasOnlyAgentRole = (scope: Scope | undefined) =>
  scope !== undefined &&
  Object.keys(scope).length === 1 &&
  scope.roles?.length === 1 &&
  scope.roles[0]?.role === 'agent'

export type ProbeOptions = { readonly file: string; readonly io: Io }
const extra = (name: string) => ({
  ...{ verb: 'impersonate', group: 'authentication.k8s.io' },
  ...{ resource: 'userextras', subresource: `authentication.platform.sh/${name}` },
})
/** The permissions that forwarding needs. */
const impersonations = [
  { verb: 'impersonate', resource: 'users' },
  { verb: 'impersonate', resource: 'groups' },
  ...['key', 'token'].map(extra),
]

const resourceName = ({ resource, subresource }: { readonly resource: string; readonly subresource?: string }) =>
  subresource ? `${resource}/${subresource}` : resource

/** Whether each cluster accepts the gateway's credentials and allows impersonation. */
export async function probeClusters(
  accesses: ReadonlyMap<string, Access>,
  { file, io }: ProbeOptions,
  report: PreflightReport,
): Promise<void> {
  const probe = async ([name, access]: [string, Access]) => {
    const transport = openTransport(access, { env: io.env, now: io.now, answerWithin: 10_000 })
    const { create } = connect({ url: access.server, below: '', fetch: transport.fetch })
    const isRefused = async (resourceAttributes: (typeof impersonations)[number]) => {
      const { object } = await create(SelfSubjectAccessReview, '', { spec: { resourceAttributes } })
      return (object.status as { readonly allowed?: boolean } | undefined)?.allowed !== true
    }
    try {
      const refused = await Promise.all(impersonations.map(isRefused))
      const missing = impersonations.filter((_, index) => refused[index]).map(resourceName)
      if (missing.length)
        report.problems.push(
          `${file}: ${name}: the gateway has no permission to impersonate ${missing.join(', ')} on this cluster, so every request would fail: grant it the verb impersonate, see docs/GATEWAY.md`,
        )
    } catch (error) {
      const { message, code } = error as ApiError
      if (isUnreachable(error))
        (isUntrusted(error as Failure) ? report.problems : report.unreachable).push(`${file}: ${name}: ${message}`)
      else if (code === 401)
        report.problems.push(`${file}: ${name} rejected the credentials of the gateway: ${message}`)
      else report.problems.push(`${file}: ${name}: cannot check whether the gateway may impersonate users: ${message}`)
    }
    transport.close()
  }
  await Promise.all([...accesses].map(probe))
}
