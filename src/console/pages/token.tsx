// Issues a direct-cluster token. The server shows it once and stores nothing.

import { useState } from 'react'
import type { JsonObject } from '../../api/object.ts'
import { DirectClusterEndpointToken as kind } from '../../kinds/direct-cluster-endpoint-token.ts'
import { tokenCommand } from '../data/commands.ts'
import { server, serverUrl } from '../data/server.ts'
import { keyText } from '../text/keys.tsx'
import { ActionButton } from '../ui/button.tsx'
import { DialogButtons } from '../ui/dialog.tsx'
import { Card, Command, Note, Page, problemOf, Stack } from '../ui/parts.tsx'
import { SchemaForm } from './schema-form.tsx'
import { ShownOnce } from './shown-once.tsx'

export function TokenPage() {
  const [spec, setSpec] = useState<JsonObject>({ ttl: 600 })
  const [token, setToken] = useState('')
  const [problem, setProblem] = useState('')
  const issue = async () => {
    setProblem('')
    try {
      const { object } = await server.create(kind, '', { spec })
      setToken(String(object.status?.['token'] ?? ''))
    } catch (error) {
      setProblem(problemOf(error).message)
    }
  }
  return (
    <Page title={keyText.token} sub={kind.description}>
      <Stack>
        <Card>
          {kind.spec && (
            <SchemaForm schema={kind.spec} value={spec} onChange={setSpec} problems={new Map()} path="spec" />
          )}
        </Card>
        {problem && (
          <Note tone="bad">
            <span role="alert">{problem}</span>
          </Note>
        )}
        <DialogButtons>
          <ActionButton look="primary" action={{ verb: 'create', kind }} onPress={() => issue()}>
            {keyText.issueToken}
          </ActionButton>
        </DialogButtons>
      </Stack>
      <Command>{tokenCommand(String(spec['ttl'] ?? 3600))}</Command>
      {token && <ShownOnce name="token" secret={token} server={serverUrl.href} onClose={() => setToken('')} />}
    </Page>
  )
}
