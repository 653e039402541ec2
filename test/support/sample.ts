// Sample objects for the end-to-end tests.

type Fields = Readonly<Record<string, unknown>>

export const group = 'management.platform.sh'
const apiVersion = `${group}/v1`

/** Manifests in JSON, which is also YAML. */
export const team = (name: string, spec: Fields = {}, metadata: Fields = {}) => ({
  apiVersion,
  kind: 'Team',
  metadata: { name, ...metadata },
  spec,
})

export const sharedSecret = (name: string, spec: Fields = {}, metadata: Fields = {}) => ({
  apiVersion,
  kind: 'SharedSecret',
  metadata: { name, ...metadata },
  spec,
})

export const accessKey = (name: string, spec: Fields = {}) => ({
  apiVersion,
  kind: 'OwnedAccessKey',
  metadata: { name },
  spec,
})

/** Several manifests in one stream of JSON. */
export const documents = (...objects: readonly unknown[]) => objects.map(one => JSON.stringify(one)).join('\n')
