// Names the keys in etcd: objects, and the engine's own records, both below the prefix of the installation.

import { Buffer } from 'node:buffer'
import type { Key } from '../store.ts'

export type Keys = {
  /** All keys of the installation, as a range. */
  readonly all: KeyRange
  readonly objects: KeyRange
  readonly times: KeyRange
  readonly replicas: KeyRange
  readonly runningReplicas: KeyRange
  ofObject(key: Key): Buffer
  /** Undefined for keys that are not objects. */
  objectOf(key: Buffer): Key | undefined
  ofRecord(name: RecordName): Buffer
  ofTime(id: string): Buffer
  timeOf(key: Buffer): string | undefined
  /** Exists while the replica runs. */
  ofReplica(id: string): Buffer
  /** Stays when the replica stops. */
  ofKnownReplica(id: string): Buffer
  isOfReplica(key: Buffer): boolean
}
export type KeyRange = { readonly key: Buffer; readonly rangeEnd: Buffer }

/** `installation`: format, id and offset. `leader`: the replica that runs the controllers. */
export type RecordName = 'installation' | 'leader' | 'master-key' | 'serving-ca'

/** Objects are below `objects/`, so that other records can be added without a conflict with a bucket. */
export function keysBelow(prefix: string): Keys {
  const root = `${prefix}/`
  const objects = `${root}objects/`
  const times = `${root}times/`
  const replicas = `${root}replicas/`
  return {
    all: rangeOf(root),
    objects: rangeOf(objects),
    times: rangeOf(times),
    replicas: rangeOf(replicas),
    runningReplicas: rangeOf(`${replicas}running/`),
    ofObject: ({ bucket, namespace, name }) => Buffer.from(`${objects}${bucket}/${namespace}/${name}`),
    objectOf(key) {
      const text = key.toString()
      if (!text.startsWith(objects)) return undefined
      const [bucket = '', namespace = '', ...rest] = text.slice(objects.length).split('/')
      return { bucket, namespace, name: rest.join('/') }
    },
    ofRecord: name => Buffer.from(`${root}records/${name}`),
    ofTime: id => Buffer.from(times + id),
    timeOf(key) {
      const text = key.toString()
      return text.startsWith(times) ? text.slice(times.length) : undefined
    },
    ofReplica: id => Buffer.from(`${replicas}running/${id}`),
    ofKnownReplica: id => Buffer.from(`${replicas}known/${id}`),
    isOfReplica: key => key.toString().startsWith(replicas),
  }
}

/** All keys that start with a text that ends with '/'. '0' is the character after '/'. */
function rangeOf(start: string): KeyRange {
  return { key: Buffer.from(start), rangeEnd: Buffer.from(`${start.slice(0, -1)}0`) }
}
