// Finds the token of a workload: in a file, in a variable, or from GitHub Actions, GitLab or Kubernetes.

import { ApiError } from '../../api/errors.ts'
import { isObject } from '../../api/object.ts'
import { type Io, UsageError } from '../../host/command.ts'
import { openTransport } from '../../transport/transport.ts'
import { proxyEnv } from '../proxy-env.ts'
import { failedSignIn } from './sign-in-api.ts'

export type TokenFlags = {
  readonly 'token-file': string | undefined
  readonly 'token-env': string | undefined
  readonly 'github-audience': string | undefined
  readonly gitlab: string | undefined
}

export type WorkloadToken = {
  readonly token: string
  /** Named in messages. */
  readonly source: string
  readonly warning?: string
}

const gitlabVariable = 'PLATFORM_ID_TOKEN'
const projectedFile = '/var/run/secrets/tokens/platform'
const defaultFile = '/var/run/secrets/kubernetes.io/serviceaccount/token'
const maxToken = 16_384

/** Uses the flag, else the first source that exists. Throws UsageError if there is none. */
export async function findWorkloadToken(io: Io, server: string, flags: TokenFlags): Promise<WorkloadToken> {
  const { 'token-file': file, 'token-env': variable, 'github-audience': audience, gitlab } = flags
  if (file !== undefined) return fromText(new TextDecoder().decode(await io.readFile(file)), `file ${file}`)
  if (variable !== undefined) return fromVariable(io, variable, `variable ${variable}`, '')
  if (audience !== undefined) return fromGitHub(io, audience)
  if (gitlab !== undefined) return fromVariable(io, gitlab, `GitLab, variable ${gitlab}`, idTokensHint)
  return detectToken(io, server)
}

const idTokensHint = '; declare it in id_tokens of the job in .gitlab-ci.yml'

async function detectToken(io: Io, server: string): Promise<WorkloadToken> {
  const { env, files } = io
  // Runners of GitHub and GitLab may be pods, so the service account comes last.
  if (env[requestUrl]) return fromGitHub(io, server)
  if (env[gitlabVariable]) {
    const from = env['GITLAB_CI'] ? `GitLab, variable ${gitlabVariable}` : `variable ${gitlabVariable}`
    return fromVariable(io, gitlabVariable, from, '')
  }
  for (const file of [projectedFile, defaultFile]) {
    const bytes = await files.read(file)
    if (!bytes) continue
    const found = fromText(new TextDecoder().decode(bytes), `Kubernetes service account, file ${file}`)
    if (file === projectedFile) return found
    const warning = `the token of ${file} is also valid for the API server of the cluster; mount one with the audience of ${server} at ${projectedFile}`
    return { ...found, warning }
  }
  const gitlab = env['GITLAB_CI'] ? `; ${gitlabVariable} is not set${idTokensHint}` : ''
  const github = env['GITHUB_ACTIONS'] ? '; give the job permissions: { id-token: write }' : ''
  throw new UsageError([
    `found no token of a workload: GitHub Actions, GitLab (${gitlabVariable}) or a Kubernetes service account${gitlab}${github}; or use --token-file or --token-env`,
  ])
}

function fromVariable({ env }: Io, name: string, source: string, hint: string): WorkloadToken {
  const text = env[name]
  if (!text) throw new UsageError([`${name} is not set${hint}`])
  return fromText(text, source)
}

/** Never repeats the text, which may be another secret. */
function fromText(text: string, source: string): WorkloadToken {
  const token = text.trim()
  if (token.length <= maxToken && /^[\w-]+\.[\w-]+\.[\w-]+$/.test(token)) return { token, source }
  throw new UsageError([`${source}: the content is not a JWT; it was not sent`])
}

const requestUrl = 'ACTIONS_ID_TOKEN_REQUEST_URL'
const requestToken = 'ACTIONS_ID_TOKEN_REQUEST_TOKEN'

async function fromGitHub(io: Io, audience: string): Promise<WorkloadToken> {
  const { [requestUrl]: at = '', [requestToken]: token } = io.env
  const isLocal = /^http:\/\/127\.0\.0\.1[:/]/.test(at)
  if (!token || !URL.canParse(at) || !(at.startsWith('https:') || isLocal))
    throw new UsageError([
      `${requestUrl} and ${requestToken} are not set: give the job of GitHub Actions permissions: { id-token: write }`,
    ])
  const url = new URL(at)
  url.searchParams.set('audience', audience)
  const access = { server: url.origin, namespace: '', insecure: false, token }
  const transport = openTransport(access, { env: proxyEnv(io.env, url.origin), now: io.now, maxBytes: 1_048_576 })
  try {
    const response = await transport.fetch(url.href, { headers: { Accept: 'application/json' } })
    if (!response.ok) throw failedSignIn(`GitHub Actions issued no token: response ${response.status}`)
    const body: unknown = await response.json().catch(() => undefined)
    const value = isObject(body) ? body['value'] : undefined
    if (typeof value !== 'string') throw new ApiError(502, 'BadGateway', 'GitHub Actions sent an invalid response')
    return fromText(value, `GitHub Actions, audience ${audience}`)
  } finally {
    transport.close()
  }
}
