// The subresource `history` of secrets (D35): which versions there are, never their values; one of them, with its data.

import { ApiError } from '../api/errors.ts'
import type { Kind, Ran, Subresource, Tools } from '../api/kind.ts'
import type { JsonObject, Resource } from '../api/object.ts'
import { sourceOf } from './project-secret-source.ts'
import { type Secret, SecretVersion, type Version, versionLabel, versionOf, versionPlace } from './secret-version.ts'

export function history(kind: () => Kind): Subresource {
  return {
    verb: 'get',
    kind: 'SecretHistory',
    hasParts: true,
    run: async (object, { part }, tools) =>
      part === undefined ? listVersions(object as Secret, tools) : showVersion(kind(), object as Secret, part, tools),
  }
}

/** Newest first. A secret that follows another shows what it had of its own before. */
async function listVersions(secret: Secret, tools: Tools): Promise<Ran> {
  const { namespace = '', uid = '' } = secret.metadata
  const kept = await tools.list(SecretVersion, { namespace, labelSelector: `${versionLabel}=${uid}` })
  const earlier = kept
    .map(({ spec }) => spec?.['version'] as Version)
    .sort((one, other) => (other.number ?? 0) - (one.number ?? 0))
  const current = sourceOf(secret) ? [] : [{ ...versionOf(secret), current: true }]
  return answer('SecretHistory', secret, { status: { versions: [...current, ...earlier] } as unknown as JsonObject })
}

/** Shaped as the secret itself is, so that whatever protects its data protects this as well. */
async function showVersion(kind: Kind, secret: Secret, part: string, tools: Tools): Promise<Ran> {
  const isNumber = /^[1-9]\d{0,8}$/.test(part)
  if (isNumber && !sourceOf(secret) && versionOf(secret).number === Number(part))
    return show(secret, versionOf(secret), secret.spec?.data)
  const found = isNumber ? await tools.read(SecretVersion, versionPlace(secret, part)) : undefined
  if (!found) {
    const { name = '' } = secret.metadata
    const what = isNumber ? `there is no version ${part} of` : 'a version is a whole number, such as 3; this is none of'
    throw new ApiError(404, 'NotFound', `${what} ${kind.plural} "${name}"; its history lists those that are kept`, {
      details: { name, group: kind.group, kind: kind.plural },
    })
  }
  return show(secret, found.spec?.['version'] as Version, found.spec?.['data'] as JsonObject | undefined)
}

const show = (secret: Secret, version: Version, data: JsonObject | undefined) =>
  answer('SecretVersion', secret, { ...(data ? { spec: { data } } : {}), status: { version } as JsonObject })

function answer(kind: string, { apiVersion, metadata }: Secret, rest: Pick<Resource, 'spec' | 'status'>): Ran {
  const { name = '', namespace = '', uid = '' } = metadata
  return { answer: { apiVersion, kind, metadata: { name, namespace, uid }, ...rest } }
}
