// Builds the manifests of deploy/kubernetes with the real kubectl, alone and with components.

import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { parseAllDocuments } from 'yaml'
import { exec } from '../support/exec.ts'

type Labels = { readonly [name: string]: string }
type Port = string | number

export type Probe = { readonly httpGet: { readonly path: string; readonly port: Port; readonly scheme?: string } }
export type Variable = {
  readonly name: string
  readonly value?: string
  readonly valueFrom?: {
    readonly fieldRef?: { readonly fieldPath: string }
    readonly secretKeyRef?: { readonly name: string; readonly key: string }
  }
}
export type Container = {
  readonly name: string
  readonly image: string
  readonly args: readonly string[]
  readonly env?: readonly Variable[]
  readonly ports?: readonly { readonly name?: string; readonly containerPort: number }[]
  readonly startupProbe: Probe
  readonly livenessProbe: Probe
  readonly readinessProbe: Probe
  readonly resources: { readonly requests: Labels; readonly limits: Labels }
  readonly securityContext: object
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string; readonly readOnly?: boolean }[]
}
export type PodSpec = {
  readonly serviceAccountName: string
  readonly automountServiceAccountToken?: boolean
  readonly enableServiceLinks?: boolean
  readonly terminationGracePeriodSeconds?: number
  readonly securityContext: { readonly [name: string]: unknown }
  readonly affinity?: object
  readonly topologySpreadConstraints?: readonly object[]
  readonly containers: readonly Container[]
  readonly volumes: readonly {
    readonly name: string
    readonly configMap?: { readonly name: string }
    readonly secret?: { readonly secretName: string }
    readonly emptyDir?: object
  }[]
}
export type Manifest = {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly labels?: Labels }
  readonly data?: Labels
  readonly automountServiceAccountToken?: boolean
  // biome-ignore lint/suspicious/noExplicitAny: the shape depends on the kind.
  readonly spec?: any
}
export type Workload = Omit<Manifest, 'spec'> & {
  readonly spec: {
    readonly replicas: number
    readonly selector: { readonly matchLabels: Labels }
    readonly template: { readonly metadata: { readonly labels: Labels }; readonly spec: PodSpec }
    readonly volumeClaimTemplates?: readonly { readonly metadata: { readonly name: string } }[]
  }
}

export type Variant = { readonly overlay: string; readonly components: readonly string[] }

/** Every overlay alone, and with each component that is meant for it. */
export const variants: readonly Variant[] = [
  { overlay: 'single', components: [] },
  { overlay: 'single', components: ['tls-secret', 'service-monitor'] },
  { overlay: 'etcd', components: [] },
  { overlay: 'etcd', components: ['cert-manager', 'service-monitor'] },
  { overlay: 'agent', components: [] },
  { overlay: 'agent', components: ['agent-monitor'] },
  { overlay: 'syncer', components: [] },
  { overlay: 'syncer', components: ['syncer-monitor'] },
]
export const titleOf = ({ overlay, components }: Variant) => [overlay, ...components].join(' with ')

export const deployDirectory = join(import.meta.dirname, '../../deploy/kubernetes')

/** Builds the overlay as its user does: from a directory of their own, with further fields of a Kustomization. */
export async function build(
  kubectl: string,
  { overlay, components }: Variant,
  fields: object = {},
): Promise<readonly Manifest[]> {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), 'platform-deploy-')))
  const own = join(directory, 'own')
  mkdirSync(own)
  const to = (name: string) => relative(own, join(deployDirectory, name))
  const kustomization = {
    apiVersion: 'kustomize.config.k8s.io/v1beta1',
    kind: 'Kustomization',
    resources: [to(`overlays/${overlay}`)],
    components: components.map(name => to(`components/${name}`)),
    ...fields,
  }
  writeFileSync(join(own, 'kustomization.yaml'), JSON.stringify(kustomization))
  try {
    const { code, stdout, stderr } = await exec(kubectl, ['kustomize', own])
    assert.equal(code, 0, stderr)
    assert.equal(stderr, '', 'kustomize warns')
    return readManifests(stdout)
  } finally {
    rmSync(directory, { recursive: true })
  }
}

function readManifests(text: string): readonly Manifest[] {
  return parseAllDocuments(text).map(document => {
    assert.deepEqual(document.errors, [])
    return document.toJS() as Manifest
  })
}

export const workloadsIn = (objects: readonly Manifest[]) =>
  objects.filter(({ kind }) => kind === 'StatefulSet' || kind === 'Deployment') as Workload[]

export function findObject(objects: readonly Manifest[], kind: string, name: string): Manifest {
  const found = objects.find(one => one.kind === kind && one.metadata.name === name)
  assert.ok(found, `${kind} ${name} is missing`)
  return found
}
