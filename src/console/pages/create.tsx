// Creates an object of any kind, with a form or as YAML. Both show the same object.

import { useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { ApiError } from '../../api/errors.ts'
import type { Kind } from '../../api/kind.ts'
import { isObject, type JsonObject, type Resource } from '../../api/object.ts'
import { useSession } from '../app/session.tsx'
import { createCommand } from '../data/commands.ts'
import { draftName, useDraft } from '../data/drafts.ts'
import { objectPath, oneOf } from '../data/places.ts'
import { server, serverUrl } from '../data/server.ts'
import { CodeEditor } from '../editor/code-editor.tsx'
import { fieldManager } from '../editor/save.ts'
import { completeFor } from '../editor/schema-help.ts'
import { fromYaml, toYaml } from '../editor/yaml.ts'
import { text } from '../text/common.ts'
import { editorText } from '../text/editor.tsx'
import { ActionButton, Button } from '../ui/button.tsx'
import { DialogButtons } from '../ui/dialog.tsx'
import { TextField } from '../ui/fields.tsx'
import { Card, Command, Note, Page, problemOf, Stack } from '../ui/parts.tsx'
import { SchemaForm } from './schema-form.tsx'
import { ShownOnce } from './shown-once.tsx'

/** Without the example's values, but with its place. */
function emptyObject(kind: Kind): JsonObject {
  const { apiVersion, kind: name } = kind
  return {
    apiVersion,
    kind: name,
    metadata: { name: '', ...(kind.namespaced ? { namespace: 'default' } : {}) },
    spec: {},
  }
}

export function CreatePage({ kind }: { kind: Kind }) {
  const navigate = useNavigate()
  const { user } = useSession()
  const { as } = useSearch({ strict: false }) as { readonly as?: string }
  const hasForm = kind.spec !== undefined
  const isYaml = as === 'yaml' || !hasForm
  const [draft, setDraft] = useDraft<string>(draftName(user, 'create', kind.id))
  const typed = draft ?? toYaml(hasForm ? emptyObject(kind) : kind.sample)
  const [problem, setProblem] = useState('')
  const [causes, setCauses] = useState<ReadonlyMap<string, string>>(new Map())
  const [isChecked, setChecked] = useState(false)
  const [created, setCreated] = useState<Resource>()
  const parsed = fromYaml(typed)
  const change = (next: string) => {
    setDraft(next)
    setChecked(false)
  }
  const discard = () => {
    setDraft(undefined)
    setChecked(false)
    setProblem('')
    setCauses(new Map())
  }
  const open = ({ metadata: { name: made = '', namespace = '' } }: Resource) =>
    navigate({ to: objectPath(kind, { name: made, namespace }) })
  const send = async (dryRun: boolean) => {
    if ('problem' in parsed) return setProblem(parsed.problem)
    setProblem('')
    setCauses(new Map())
    const { metadata } = parsed.object as { readonly metadata?: { readonly namespace?: string } }
    try {
      const { object } = await server.create(kind, metadata?.namespace ?? '', parsed.object, { dryRun, fieldManager })
      if (dryRun) return setChecked(true)
      setDraft(undefined)
      if (secretOf(object)) return setCreated(object)
      await open(object)
    } catch (error) {
      setChecked(false)
      setProblem(problemOf(error).message)
      const found = error instanceof ApiError ? (error.details?.causes ?? []) : []
      setCauses(new Map(found.flatMap(({ field, message }) => (field ? [[field, message] as const] : []))))
    }
  }
  const tab = isYaml ? (
    <CodeEditor label={text.create(oneOf(kind))} value={typed} onChange={change} complete={completeFor(kind)} />
  ) : 'problem' in parsed ? (
    <Note tone="bad">{parsed.problem}</Note>
  ) : (
    <ObjectForm kind={kind} object={parsed.object} problems={causes} onChange={next => change(toYaml(next))} />
  )
  return (
    <Page
      title={text.create(oneOf(kind))}
      sub={kind.description}
      actions={
        hasForm && (
          <Button onPress={() => void navigate({ to: '.', search: isYaml ? {} : { as: 'yaml' }, replace: true })}>
            {isYaml ? editorText.useForm : editorText.useYaml}
          </Button>
        )
      }
    >
      <Stack>
        <Card>{tab}</Card>
        {problem && (
          <Note tone="bad">
            <span role="alert">{problem}</span>
          </Note>
        )}
        {isChecked && <Note>{editorText.wouldCreate}</Note>}
        <DialogButtons>
          {draft !== undefined && <Button onPress={discard}>{text.discard}</Button>}
          <Button onPress={() => send(true)}>{text.check}</Button>
          <ActionButton
            look="primary"
            action={{ verb: 'create', kind, ...(kind.namespaced ? { namespace: namespaceIn(parsed) } : {}) }}
            onPress={() => send(false)}
          >
            {text.create(oneOf(kind))}
          </ActionButton>
        </DialogButtons>
      </Stack>
      <Command>{createCommand(kind)}</Command>
      {created && (
        <ShownOnce
          name={created.metadata.name ?? ''}
          secret={secretOf(created)}
          server={serverUrl.href}
          onClose={() => void open(created)}
        />
      )}
    </Page>
  )
}

/** The server shows the key of an access key once, in this response. */
const secretOf = ({ spec }: Resource): string => String((spec as { readonly key?: string } | undefined)?.key ?? '')

function namespaceIn(parsed: ReturnType<typeof fromYaml>): string {
  const metadata = 'object' in parsed ? parsed.object['metadata'] : undefined
  return isObject(metadata) ? String(metadata['namespace'] ?? 'default') : 'default'
}

type ObjectFormProps = {
  readonly kind: Kind
  readonly object: JsonObject
  readonly problems: ReadonlyMap<string, string>
  readonly onChange: (object: JsonObject) => void
}

function ObjectForm({ kind, object, problems, onChange }: ObjectFormProps) {
  const metadata = isObject(object['metadata']) ? object['metadata'] : {}
  const spec = isObject(object['spec']) ? object['spec'] : {}
  const setName = (field: string) => (value: string) =>
    onChange({ ...object, metadata: { ...metadata, [field]: value } })
  return (
    <Stack>
      <TextField
        label={editorText.name}
        isMono
        isRequired
        value={String(metadata['name'] ?? '')}
        problem={problems.get('metadata.name')}
        onChange={setName('name')}
      />
      {kind.namespaced && (
        <TextField
          label={editorText.namespace}
          isMono
          value={String(metadata['namespace'] ?? '')}
          onChange={setName('namespace')}
        />
      )}
      {kind.spec && (
        <SchemaForm
          schema={kind.spec}
          value={spec}
          problems={problems}
          path="spec"
          onChange={next => onChange({ ...object, spec: next })}
        />
      )}
    </Stack>
  )
}
