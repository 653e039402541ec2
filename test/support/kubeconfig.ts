// A kubeconfig with one context, for a server that a test has started.

type Trust = { readonly token?: string; readonly ca?: string }

export const kubeconfigOf = (server: string, { token = 'any', ca }: Trust = {}): string =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'here',
    contexts: [{ name: 'here', context: { cluster: 'here', user: 'me' } }],
    clusters: [
      {
        name: 'here',
        cluster: { server, ...(ca ? { 'certificate-authority-data': Buffer.from(ca).toString('base64') } : {}) },
      },
    ],
    users: [{ name: 'me', user: { token } }],
  })
