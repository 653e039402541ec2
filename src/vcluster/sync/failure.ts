// Describes an API error of one side, with the server if it is not a Kubernetes API server.

import type { ApiError } from '../../api/errors.ts'
import { MissingApiError } from './api-errors.ts'
import type { Opened } from './flags.ts'

export function describeError({ flags, virtual, host }: Opened, error: ApiError): string {
  if (!(error instanceof MissingApiError)) return error.message
  const isHost = error.side === 'host'
  const side = isHost ? `the host at ${host.server}` : `the virtual cluster at ${virtual.server}`
  const from =
    isHost && flags['host-kubeconfig'] === undefined ? 'the cluster this runs in' : `--${error.side}-kubeconfig`
  return `${side} ${error.message}: it must be a Kubernetes API server (${from})`
}
