// The entry of auth.yaml with which an agent signs in with the token of its service account (D68). Pure.

import { writeYaml } from '../../api/encode.ts'
import { agentName } from './manifests.ts'

export type ServiceAccountAgent = {
  readonly name: string
  /** uid of the Cluster. */
  readonly uid: string
  /** Namespace of the agent. */
  readonly namespace: string
  /** Issuer of the cluster's service-account tokens. */
  readonly issuer: string
  /** The management API, for which the tokens are issued. */
  readonly audience: string
}

export function authEntryText({ name, uid, namespace, issuer, audience }: ServiceAccountAgent): string {
  const entry = {
    name: `cluster-${name}`,
    issuer: { url: issuer, audiences: [audience] },
    claimMappings: { username: { claim: 'sub' } },
    agent: { cluster: name, uid, namespace, serviceAccount: agentName },
  }
  return `The agent signs in with the token of its service account. Add this entry to auth.yaml of the server:\n${writeYaml({ jwt: [entry] })}`
}
