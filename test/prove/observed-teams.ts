// Converts teams in responses to the recorded form. traffic.ts and watchers.ts use it.

import type { Sight } from './recording.ts'

export const teams = '/kubernetes/management/apis/management.platform.sh/v1/teams'

export type Team = {
  readonly metadata: {
    readonly name: string
    readonly uid: string
    readonly resourceVersion: string
    readonly labels?: { readonly color?: string }
    readonly annotations?: { readonly [name: string]: string }
  }
  readonly spec?: { readonly description?: string }
}

export const sightOf = ({ metadata, spec }: Team): Sight => ({
  name: metadata.name,
  version: Number(metadata.resourceVersion),
  uid: metadata.uid,
  value: spec?.description ?? '',
  color: metadata.labels?.color ?? '',
})

export const teamText = (name: string, value: string, color: string, version?: number) =>
  `{"metadata":{"name":"${name}","labels":{"color":"${color}"}${
    version === undefined ? '' : `,"resourceVersion":"${version}"`
  }},"spec":{"description":"${value}"}}`
