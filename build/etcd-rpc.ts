// Generates src/storage/etcd/rpc.generated.ts from rpc.proto. Run it after a change of rpc.proto; needs protoc in PATH.

import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')
const folder = join(root, 'src/storage/etcd')
const options = [
  'env=node',
  'esModuleInterop=true',
  'importSuffix=.ts',
  'outputServices=grpc-js',
  'outputJsonMethods=false',
  'outputPartialMethods=false',
  'comments=false',
  'unrecognizedEnum=false',
  'enumsAsLiterals=true',
  'useJsTypeOverride=true',
  'useReadonlyTypes=true',
  'annotateFilesWithVersion=false',
]

const work = mkdtempSync(join(tmpdir(), 'platform-protoc-'))
try {
  execFileSync('protoc', [
    `--plugin=protoc-gen-ts_proto=${join(root, 'node_modules/.bin/protoc-gen-ts_proto')}`,
    `--ts_proto_out=${work}`,
    `--ts_proto_opt=${options.join(',')}`,
    `-I${folder}`,
    'rpc.proto',
  ])
  const lines = readFileSync(join(work, 'rpc.ts'), 'utf8').split('\n').slice(1)
  const head = '// Code generated from rpc.proto by build/etcd-rpc.ts and ts-proto. Do not edit it.'
  writeFileSync(join(folder, 'rpc.generated.ts'), `${head}\n${lines.join('\n')}`)
} finally {
  rmSync(work, { recursive: true, force: true })
}
