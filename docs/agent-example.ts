// Makes deploy/kubernetes/overlays/agent/agent.yaml: the manifests that `platform connect cluster` prints, without a key.

import { writeYaml } from '../src/api/encode.ts'
import { manifestsOf } from '../src/cli/clusters/manifests.ts'

export function agentExample(): string {
  const url = 'https://platform.example.org'
  const objects = manifestsOf({
    cluster: 'prod',
    namespace: 'platform-agent',
    image: 'platform',
    bindableRoles: ['view'],
    secretNamespaces: ['shop'],
    issuer: url,
    server: url,
    ca: undefined,
    key: undefined,
    usesServiceAccount: false,
    gatewayUrl: 'https://gateway.prod.example.org',
    tlsSecret: 'platform-agent-tls',
  })
  return `# Made by npm run docs: an example of what platform connect cluster prints.\n${objects.map(one => `---\n${writeYaml(one)}`).join('')}`
}
