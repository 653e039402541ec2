// Every parser of foreign input in the program, with its input and its allowed errors. shape-fuzz.ts feeds them.

import { generateKeyPairSync, webcrypto } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { matchesAudit, parseAuditQuery } from '../../src/api/audit-query.ts'
import { ApiError } from '../../src/api/errors.ts'
import { applyJsonPatch, PatchError } from '../../src/api/json-patch.ts'
import { DecodeError, readJson } from '../../src/api/json-reader.ts'
import { applyMergePatch } from '../../src/api/merge-patch.ts'
import type { Json } from '../../src/api/object.ts'
import { belowPrefix, parsePath } from '../../src/api/paths.ts'
import { parseFieldSelector, parseLabelSelector, SelectorError } from '../../src/api/selector.ts'
import { applyStrategicMerge } from '../../src/api/strategic-merge.ts'
import { readYaml } from '../../src/api/yaml-reader.ts'
import { TokenError, verifyToken } from '../../src/auth/tokens/token.ts'
import { loadGatewayConfig } from '../../src/gateway/config/config.ts'
import { readProtobuf } from '../../src/http/protobuf.ts'
import { Team } from '../../src/kinds/team.ts'
import { KubeconfigError, readKubeconfig } from '../../src/transport/kubeconfig.ts'
import { loadConfig } from '../../src/vcluster/config/config.ts'
import { parseExpression } from '../../src/vcluster/patch/expression.ts'
import { checkPatches } from '../../src/vcluster/patch/patch.ts'
import { PathError, parsePath as parsePatchPath } from '../../src/vcluster/patch/path.ts'
import { buildApiServer } from '../support/in-process.ts'

// biome-ignore lint/suspicious/noExplicitAny: any class of errors
type ErrorClass = new (...args: any[]) => Error
export type Shape = {
  readonly seeds: readonly string[]
  /** Errors that describe the problem of the text. Any other is a crash. */
  readonly may: readonly ErrorClass[]
  readonly read: (text: string) => unknown
}

const root = join(import.meta.dirname, '../..')
const bytes = (text: string) => Buffer.from(text)
const team =
  '{"apiVersion":"management.platform.sh/v1","kind":"Team","metadata":{"name":"a","labels":{"x":"y"},"finalizers":["a/b"]},"spec":{"displayName":"d","description":"x","users":["u","v"]}}'
const teamValue = JSON.parse(team) as Json
const now = () => 1_700_000_000

const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
const claims = { iss: 'https://issuer', aud: ['a'], sub: 'u', exp: now() + 60, iat: now(), nbf: now(), jti: 'x' }
const token = `${part({ alg: 'ES256', typ: 'JWT', kid: 'k' })}.${part(claims)}.${'A'.repeat(86)}`
const publicKey = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' })

const kubeconfig = `apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: k, user: u, namespace: n}}]
clusters: [{name: k, cluster: {server: "https://localhost:1", certificate-authority-data: QQ==}}]
users: [{name: u, user: {token: t, exec: {apiVersion: client.authentication.k8s.io/v1, command: x, args: [a]}}}]
`
const gateway =
  'listen: 127.0.0.1:1\nissuer: https://localhost\nclusters:\n  - name: a\n    kubeconfig: f\n    context: c\n'

/** Parsers that need state: a server with one team. */
export async function openShapes(): Promise<{ readonly [name: string]: Shape }> {
  const apiServer = await buildApiServer()
  const key = await webcrypto.subtle.importKey('jwk', publicKey, { name: 'ECDSA', namedCurve: 'P-256' }, true, [
    'verify',
  ])
  const verifying = { issuer: 'https://issuer', audience: 'a', now: () => now() * 1000, keyOf: async () => key }
  await apiServer.resources.create(Team, '', teamValue)
  const at = { namespace: '', name: 'a' }
  const jsonOf = (text: string) => readJson(text).value
  const patch =
    '[{"op":"add","path":"/spec/users/-","value":"v"},{"op":"move","from":"/spec/users/0","path":"/metadata/labels/x~1y"},{"op":"test","path":"","value":1}]'
  return {
    JSON: {
      seeds: [team, patch, '[1e5,-0.1,"\\u00e9",null,{"":[]}]'],
      may: [DecodeError],
      read: text => readJson(text),
    },
    YAML: {
      seeds: [kubeconfig, team, 'a: &x [1, 2]\nb: *x\n? c\n: |\n  d\n'],
      may: [DecodeError],
      read: text => readYaml(text),
    },
    'JSON Patch': {
      seeds: [patch],
      may: [DecodeError, PatchError],
      read: text => applyJsonPatch(teamValue, jsonOf(text)),
    },
    'merge patch': { seeds: [team], may: [DecodeError], read: text => applyMergePatch(teamValue, jsonOf(text)) },
    'strategic merge patch': {
      seeds: [
        '{"spec":{"$patch":"replace","users":["a"],"$deleteFromPrimitiveList/users":["u"],"$retainKeys":["users"]}}',
      ],
      may: [DecodeError, ApiError],
      read: text => applyStrategicMerge(teamValue, jsonOf(text)),
    },
    'label selectors': {
      seeds: ['a=b,c!=d,e in (f,g),!h,i notin (j)', 'example.org/name==x'],
      may: [SelectorError],
      read: text => parseLabelSelector(text).matches({ a: 'b' }),
    },
    'field selectors': {
      seeds: ['metadata.name=a,metadata.namespace!=b\\,c'],
      may: [SelectorError],
      read: text => parseFieldSelector(text, ['metadata.name', 'metadata.namespace']).matches(() => 'a'),
    },
    'audit selectors': {
      seeds: ['user=ada,verb!=get,code=4xx,from=2026-01-31T12:00:00Z,to=2026-02-01T00:00:00+01:00,name=a\\,b'],
      may: [ApiError],
      read: text => matchesAudit(parseAuditQuery(text), { stage: 'Panic', user: { username: 'ada' } }, () => 'a'),
    },
    paths: {
      seeds: [
        '/kubernetes/management/apis/management.platform.sh/v1/namespaces/n/projectsecrets/a/status',
        '/api/v1/x',
      ],
      may: [],
      read: text => [belowPrefix(text), parsePath(text)],
    },
    protobuf: {
      seeds: ['k8s\u0000\n\u000e\n\u0002v1\u0012\u0008Role\u0012\u0004\n\u0002ab'],
      may: [ApiError],
      read: text => readProtobuf(Buffer.from(text, 'latin1'), { maxValues: 50_000, maxText: 1_500_000 }),
    },
    create: {
      seeds: [team],
      may: [DecodeError, ApiError],
      read: text => apiServer.resources.create(Team, '', jsonOf(text), { dryRun: true }),
    },
    update: {
      seeds: [team],
      may: [DecodeError, ApiError],
      read: text => apiServer.resources.update(Team, at, jsonOf(text), { dryRun: true }),
    },
    apply: {
      seeds: [team],
      may: [DecodeError, ApiError],
      read: text =>
        apiServer.resources.patch(
          Team,
          at,
          { type: 'apply', body: jsonOf(text), force: true },
          { fieldManager: 'm', dryRun: true },
        ),
    },
    JWTs: { seeds: [token], may: [TokenError], read: text => verifyToken(text, verifying) },
    kubeconfigs: {
      seeds: [kubeconfig],
      may: [KubeconfigError],
      read: text => readKubeconfig(bytes(text), { file: 'f', directory: '/' }),
    },
    'vcluster.yaml': {
      seeds: [readFileSync(join(root, 'examples/vcluster.yaml'), 'utf8')],
      may: [],
      read: text => loadConfig(bytes(text), { noPatchesReason: undefined }),
    },
    'gateway.yaml': { seeds: [gateway], may: [], read: text => loadGatewayConfig(bytes(text), true) },
    'patch paths': {
      seeds: ['spec.containers[*].env[?(@.name=="a")].value', 'metadata.annotations["a.b/c"]', 'a[0].b'],
      may: [PathError],
      read: text => parsePatchPath(text),
    },
    expressions: {
      seeds: ['value.split("-").map(x => x + `a`)', '({a: [1, ...b], c: d?.e ?? /x/u})'],
      may: [],
      read: text => parseExpression(text),
    },
    patches: {
      seeds: ['[{"path":"spec.a","expression":"value"},{"path":"x","reference":{"apiVersion":"v1","kind":"Secret"}}]'],
      may: [DecodeError],
      read: text => checkPatches(jsonOf(text)),
    },
  }
}
