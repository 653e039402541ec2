// What a failure of a side is called before people: with its server, where it is the wrong one. sync.ts and sync-once.ts call it.

import type { ApiError } from '../../api/errors.ts'
import { MissingApiError } from './api-errors.ts'
import type { Opened } from './flags.ts'

export function toldOf({ asked, virtual, host }: Opened, error: ApiError): string {
  if (!(error instanceof MissingApiError)) return error.message
  const isHost = error.side === 'host'
  const side = isHost ? `the host at ${host.server}` : `the virtual cluster at ${virtual.server}`
  const from =
    isHost && asked['host-kubeconfig'] === undefined ? 'the cluster this runs in' : `--${error.side}-kubeconfig`
  return `${side} ${error.message}: it must be a Kubernetes API server (${from})`
}
