// What `platform gateway --check` asks: the issuer whether it is one, the service and the clusters whether they take the gateway's credentials. gateway-check.ts calls it.

import { dirname, resolve } from 'node:path'
import type { Scope } from '../api/caller.ts'
import { ApiError } from '../api/errors.ts'
import { isObject, type Json } from '../api/object.ts'
import type { Io } from '../cli/command.ts'
import { connect } from '../client/connect.ts'
import { isAboutCertificates } from '../gateway/backend.ts'
import type { GatewayConfig } from '../gateway/config-schema.ts'
import { SelfSubjectAccessReview } from '../kinds/reviews.ts'
import { TokenRevocation } from '../kinds/token-revocation.ts'
import type { Access } from '../kubeconfig/access.ts'
import { openTransport } from '../kubeconfig/transport.ts'
import type { Service } from './gateway-service.ts'

/** `away`: whoever cannot be reached now, and may be later. */
export type Told = { readonly problems: string[]; readonly warnings: string[]; readonly away: string[] }
type About = { readonly config: GatewayConfig; readonly file: string }
type Failure = Error & { readonly cause?: unknown }

const isAway = (error: unknown) => !(error instanceof ApiError) || error.code >= 500 || error.code === 429
const isMistrust = ({ cause }: Failure) => isAboutCertificates(String((cause as { code?: string } | undefined)?.code))

/** A gateway starts without the service: that it cannot be reached is a warning. */
export async function askIssuer(
  service: Service,
  { config, file }: About,
  { problems, warnings }: Told,
): Promise<void> {
  const tell = (setting: string) => (error: Failure) => {
    const list = isAway(error) && !isMistrust(error) ? warnings : problems
    list.push(`${file}: ${isAway(error) ? 'issuer' : setting}: ${error.message}`)
  }
  const metadata = await service.fetchMetadata().catch(tell('issuer.url'))
  const named = isObject(metadata ?? null) ? (metadata as { readonly issuer?: Json }).issuer : undefined
  if (metadata !== undefined && named !== config.issuer?.url)
    problems.push(
      `${file}: issuer.url: the issuer at ${config.issuer?.url} calls itself ${JSON.stringify(named)?.slice(0, 256)}: its tokens say so, and none of them would count`,
    )
  const keys = await service.fetchKeys().catch(tell('issuer.keySet'))
  if (keys !== undefined && !(isObject(keys) && Array.isArray(keys['keys']) && keys['keys'].length))
    problems.push(`${file}: issuer.keySet: the issuer answers no keys: none of its tokens would count`)
}

export async function askService(service: Service, { config, file }: About, told: Told): Promise<void> {
  const { problems, warnings } = told
  const keyFile = resolve(dirname(file), config.service?.keyFile ?? '')
  const tell = (error: Failure) => {
    if (isAway(error)) (isMistrust(error) ? problems : warnings).push(`${file}: service: ${error.message}`)
    else if ((error as ApiError).code === 401)
      problems.push(
        `${file}: service.keyFile: the service does not take the access key in ${keyFile}: ${error.message}`,
      )
    else if ((error as ApiError).code === 403)
      problems.push(`${file}: service.keyFile: ${refusalOf(keyFile, error.message)}`)
    else problems.push(`${file}: service: ${error.message}`)
  }
  const isFollowed = await service.resources
    .list(TokenRevocation, { limit: 1 })
    .then(() => true)
    .catch(tell)
  if (!isFollowed) return
  const own = await service.reviewSelf().catch(tell)
  if (own && !isAgentAlone(own.caller.scope))
    warnings.push(
      `${file}: service.keyFile: the key in ${keyFile} may do more than a gateway does: give it the scope role agent and nothing else`,
    )
}

/** The service says when it was the key's scope; otherwise nothing lets its user do it. */
function refusalOf(keyFile: string, message: string): string {
  if (/the scope of access key ".*" does not cover it/.test(message))
    return `the scope of the key in ${keyFile} does not cover what a gateway does: it needs the scope role agent: ${message}`
  const [, user = 'USER'] = /User "([\w.@:-]+)" cannot/.exec(message) ?? []
  return `the key in ${keyFile} belongs to a user that may not do what a gateway does: kubectl create clusterrolebinding gateway --clusterrole=platform-gateway --user=${user}: ${message}`
}

const isAgentAlone = (scope: Scope | undefined) =>
  scope !== undefined &&
  Object.keys(scope).length === 1 &&
  scope.roles?.length === 1 &&
  scope.roles[0]?.role === 'agent'

type Ways = { readonly file: string; readonly io: Io }
const presents = { verb: 'impersonate', resource: 'users' }

/** Whether each takes the gateway's credentials, and lets it present others. */
export async function askClusters(
  accesses: ReadonlyMap<string, Access>,
  { file, io }: Ways,
  told: Told,
): Promise<void> {
  const ask = async ([name, access]: [string, Access]) => {
    const transport = openTransport(access, { env: io.env, now: io.now, answerWithin: 10_000 })
    const { create } = connect({ url: access.server, below: '', fetch: transport.fetch })
    try {
      const { object } = await create(SelfSubjectAccessReview, '', { spec: { resourceAttributes: presents } })
      if ((object.status as { readonly allowed?: boolean } | undefined)?.allowed !== true)
        told.problems.push(`${file}: ${name}: the gateway may not impersonate users there: see docs/GATEWAY.md`)
    } catch (error) {
      const { message, code } = error as ApiError
      if (isAway(error)) (isMistrust(error as Failure) ? told.problems : told.away).push(`${file}: ${name}: ${message}`)
      else if (code === 401) told.problems.push(`${file}: ${name} does not take the gateway’s credentials: ${message}`)
      else told.problems.push(`${file}: ${name} does not say whether the gateway may impersonate users: ${message}`)
    }
    transport.close()
  }
  await Promise.all([...accesses].map(ask))
}
