// A server whose requests the cost prover measures on the main thread.

import type { Resources } from '../../../src/api/resources.ts'
import type { BuildOptions } from '../../../src/apiserver/api-server.ts'
import { type HttpAnswer, type HttpRequest, type Streaming, send, stream } from '../../support/direct-http.ts'
import { openDirectServer } from '../../support/direct-server.ts'

export type System = {
  readonly adminKey: string
  ask(request: HttpRequest): Promise<HttpAnswer>
  /** An open watch. */
  watch(request: HttpRequest): Streaming
  close(): Promise<void>
}

/** `first`: creates objects before the first request, as the server. */
export async function openSystem(
  first?: (internalClient: Resources) => Promise<void>,
  signIn?: BuildOptions['signIn'],
  unstored?: Pick<BuildOptions, 'auditLog' | 'previewPatches'>,
): Promise<System> {
  const { apiServer, adminKey, handle, close } = await openDirectServer({
    now: Date.now,
    auditLevel: 'Metadata',
    ...(first ? { first } : {}),
    signIn,
    unstored,
  })
  // A server builds its index soon after the start.
  await apiServer.registry.indexed()
  return { adminKey, ask: request => send(handle, request), watch: request => stream(handle, request), close }
}
