// Handles the `history` subresource of secrets: lists versions without values, or returns one version with its data (D35).

import type { SubresourceHandler, SubresourceResult } from '../api/admission.ts'
import { ApiError } from '../api/errors.ts'
import type { Kind } from '../api/kind.ts'
import type { JsonObject, Ref, Resource } from '../api/object.ts'
import { sourceOf } from '../kinds/project-secret-source.ts'
import { type Secret, type Version, versionLabel, versionOf, versionRef } from '../kinds/secret-version.ts'

export type HistoryDependencies = {
  /** A SecretVersion with decrypted data. */
  readonly openVersion: (ref: Ref) => Resource | undefined
  /** SecretVersions with encrypted data. */
  readonly listVersions: (selection: {
    readonly namespace: string
    readonly labelSelector: string
  }) => Promise<readonly Resource[]>
}

export const secretHistory =
  (kind: Kind, dependencies: HistoryDependencies): SubresourceHandler<Secret> =>
  async (secret, { part }) =>
    part === undefined ? listVersions(secret, dependencies) : showVersion(kind, secret, part, dependencies)

/** Newest first. A secret that follows another shows its own earlier versions. */
async function listVersions(secret: Secret, dependencies: HistoryDependencies): Promise<SubresourceResult> {
  const earlier = await storedVersions(secret, dependencies)
  const current = sourceOf(secret) ? [] : [{ ...versionOf(secret), current: true }]
  return answer('SecretHistory', secret, { status: { versions: [...current, ...earlier] } as unknown as JsonObject })
}

/** The versions before the current one, newest first. */
export async function storedVersions(secret: Secret, { listVersions: list }: HistoryDependencies): Promise<Version[]> {
  const { namespace = '', uid = '' } = secret.metadata
  const kept = await list({ namespace, labelSelector: `${versionLabel}=${uid}` })
  return kept
    .map(({ spec }) => spec?.['version'] as Version)
    .sort((one, other) => (other.number ?? 0) - (one.number ?? 0))
}

/** Has the structure of the secret itself, so that the same protection applies to its data. */
async function showVersion(
  kind: Kind,
  secret: Secret,
  part: string,
  { openVersion }: HistoryDependencies,
): Promise<SubresourceResult> {
  const isNumber = /^[1-9]\d{0,8}$/.test(part)
  if (isNumber && !sourceOf(secret) && versionOf(secret).number === Number(part))
    return show(secret, versionOf(secret), secret.spec?.data)
  const found = isNumber ? openVersion(versionRef(secret, part)) : undefined
  if (!found) {
    const { name = '' } = secret.metadata
    const what = isNumber ? `version ${part} not found in` : 'a version must be a whole number, such as 3, in'
    throw new ApiError(404, 'NotFound', `${what} ${kind.plural} "${name}"; its history lists the available versions`, {
      details: { name, group: kind.group, kind: kind.plural },
    })
  }
  return show(secret, found.spec?.['version'] as Version, found.spec?.['data'] as JsonObject | undefined)
}

const show = (secret: Secret, version: Version, data: JsonObject | undefined) =>
  answer('SecretVersion', secret, { ...(data ? { spec: { data } } : {}), status: { version } as JsonObject })

function answer(
  kind: string,
  { apiVersion, metadata }: Secret,
  rest: Pick<Resource, 'spec' | 'status'>,
): SubresourceResult {
  const { name = '', namespace = '', uid = '' } = metadata
  return { answer: { apiVersion, kind, metadata: { name, namespace, uid }, ...rest } }
}
