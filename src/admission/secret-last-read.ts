// Handles the `lastread` subresource of secrets: the last time that somebody read the data (D35).

import type { SubresourceHandler } from '../api/admission.ts'
import { timestamp } from '../api/object.ts'
import { lastread, readId } from '../kinds/last-read.ts'
import type { Secret } from '../kinds/secret-version.ts'

export type LastReadDependencies = { readonly lastActivity: (id: string) => number | undefined }

export const secretLastRead =
  ({ lastActivity }: LastReadDependencies): SubresourceHandler<Secret> =>
  async ({ apiVersion, metadata: { name = '', namespace = '', uid = '' } }) => {
    const read = lastActivity(readId(uid))
    const status = read === undefined ? {} : { lastRead: timestamp(read) }
    return { answer: { apiVersion, kind: lastread.kind, metadata: { name, namespace, uid }, status } }
  }
