// Creates an object of any kind from YAML. Starts with the example of the kind.

import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import type { Kind } from '../../api/kind.ts'
import { objectPath, oneOf } from '../data/places.ts'
import { server } from '../data/server.ts'
import { CodeEditor } from '../editor/code-editor.tsx'
import { fieldManager } from '../editor/save.ts'
import { fromYaml, toYaml } from '../editor/yaml.ts'
import { text } from '../text.ts'
import { ActionButton, Button } from '../ui/button.tsx'
import { DialogButtons } from '../ui/dialog.tsx'
import { Card, Command, Note, Page, problemOf, Stack } from '../ui/parts.tsx'

export function CreatePage({ kind }: { kind: Kind }) {
  const navigate = useNavigate()
  const [typed, setTyped] = useState(() => toYaml(kind.sample))
  const [problem, setProblem] = useState('')
  const [isChecked, setChecked] = useState(false)
  const send = async (dryRun: boolean) => {
    const parsed = fromYaml(typed)
    if ('problem' in parsed) return setProblem(parsed.problem)
    setProblem('')
    const { metadata } = parsed.object as { readonly metadata?: { readonly namespace?: string } }
    try {
      const { object } = await server.create(kind, metadata?.namespace ?? '', parsed.object, { dryRun, fieldManager })
      if (dryRun) return setChecked(true)
      const { name = '', namespace = '' } = object.metadata
      await navigate({ to: objectPath(kind, { name, namespace }) })
    } catch (error) {
      setChecked(false)
      setProblem(problemOf(error).message)
    }
  }
  return (
    <Page title={text.create(oneOf(kind))} sub={kind.description}>
      <Stack>
        <Card>
          <CodeEditor
            label={text.create(oneOf(kind))}
            value={typed}
            onChange={next => {
              setTyped(next)
              setChecked(false)
            }}
          />
        </Card>
        {problem && (
          <Note tone="bad">
            <span role="alert">{problem}</span>
          </Note>
        )}
        {isChecked && <Note>The server would accept this. Nothing is created yet.</Note>}
        <DialogButtons>
          <Button onPress={() => void send(true)}>Check</Button>
          <ActionButton look="primary" action={{ verb: 'create', kind }} onPress={() => void send(false)}>
            {text.create(oneOf(kind))}
          </ActionButton>
        </DialogButtons>
      </Stack>
      <Command>{`kubectl create -f ${kind.singular}.yaml`}</Command>
    </Page>
  )
}
