// Uses an installed server through kubectl: writes and reads a secret, and evaluates a patch in a sandbox thread.

import assert from 'node:assert/strict'
import { PatchPreview } from '../../src/kinds/patch-preview.ts'
import { exec } from '../support/exec.ts'

const secret = {
  apiVersion: 'management.platform.sh/v1',
  kind: 'SharedSecret',
  metadata: { name: 'db', namespace: 'build' },
  spec: { data: { password: 'aHVudGVyMg==' } },
}

export type Kubectl = (args: readonly string[], object?: unknown) => Promise<string>

/** Runs kubectl as the administrator; it must succeed. */
export const kubectlFor =
  (file: string, kubeconfig: string): Kubectl =>
  async (args, object) => {
    const stdin = object === undefined ? '' : JSON.stringify(object)
    const { code, stdout, stderr } = await exec(
      file,
      ['--kubeconfig', kubeconfig, '--cache-dir', `${kubeconfig}.cache`, ...args],
      {
        stdin,
        env: { KUBERC: 'off' },
      },
    )
    assert.equal(code, 0, stderr)
    return stdout
  }

export async function useServer(kubectl: Kubectl): Promise<void> {
  await kubectl(['create', '-f', '-'], secret)
  await checkSecret(kubectl)
  assert.match(await kubectl(['create', '-o', 'json', '-f', '-'], PatchPreview.sample), /"app": "x-web"/)
}

export async function checkSecret(kubectl: Kubectl): Promise<void> {
  const path = 'jsonpath={.spec.data.password}'
  assert.equal(await kubectl(['get', 'sharedsecret', 'db', '-n', 'build', '-o', path]), secret.spec.data.password)
}
