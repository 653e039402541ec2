// The YAML of an object: edit, check, compare, save. The text belongs to the user; events never change it.

import { useQueryClient } from '@tanstack/react-query'
import { useCallback, useMemo, useState } from 'react'
import type { JsonObject, Resource } from '../../api/object.ts'
import { useSession } from '../app/session.tsx'
import { draftName, useDraft } from '../data/drafts.ts'
import { objectKey, readObject } from '../data/object.ts'
import { usePermission } from '../data/permission.ts'
import { server } from '../data/server.ts'
import { CodeEditor } from '../editor/code-editor.tsx'
import { editable } from '../editor/difference.ts'
import { linesOf } from '../editor/owner-lines.ts'
import { affectedManagers, managersOf } from '../editor/owners.ts'
import { fieldManager, type Saved, save } from '../editor/save.ts'
import { completeFor } from '../editor/schema-help.ts'
import { fromYaml, toYaml } from '../editor/yaml.ts'
import { text } from '../text/common.ts'
import { editorText } from '../text/editor.tsx'
import { ActionButton, Button, Denial } from '../ui/button.tsx'
import { DialogButtons } from '../ui/dialog.tsx'
import { Card, Columns, Note, problemOf } from '../ui/parts.tsx'
import { ChangeList } from './change-list.tsx'
import { AffectedManagers, ManagersCard } from './field-managers.tsx'
import { MergeDialog } from './merge-dialog.tsx'
import type { TabProps } from './tab.ts'

type Draft = { readonly base: Resource; readonly text: string }

export function YamlTab({ kind, at, object }: TabProps) {
  const { user } = useSession()
  const client = useQueryClient()
  const [draft, setDraft, latest] = useDraft<Draft>(draftName(user, 'yaml', kind.id, at.namespace, at.name))
  const [problem, setProblem] = useState('')
  const [warnings, setWarnings] = useState<readonly string[]>([])
  const [isChecked, setChecked] = useState(false)
  const [conflict, setConflict] = useState<Extract<Saved, { result: 'conflict' }>>()
  const permission = usePermission({ verb: 'patch', kind, ...at })
  const shown = useMemo(() => toYaml(editable(object as unknown as JsonObject)), [object])
  const managers = useMemo(() => managersOf(object), [object])
  const notes = useCallback((typed: string) => linesOf(managers, typed, fieldManager), [managers])

  const change = (typed: string) => {
    const base = draft?.base ?? object
    setProblem('')
    setChecked(false)
    if (typed === toYaml(editable(base as unknown as JsonObject))) return discard()
    setDraft({ base, text: typed })
  }
  const discard = () => {
    setDraft(undefined)
    setProblem('')
    setChecked(false)
  }
  const send = async (dryRun: boolean) => {
    if (!draft) return
    const parsed = fromYaml(draft.text)
    if ('problem' in parsed) return setProblem(parsed.problem)
    const said: string[] = []
    try {
      const edit = {
        kind,
        ref: at,
        base: draft.base,
        edited: parsed.object,
        dryRun,
        warn: (one: string) => said.push(one),
      }
      const saved = await save(server, readObject, edit)
      setWarnings(said)
      if (saved.result === 'conflict') return setConflict(saved)
      if (dryRun) return setChecked(true)
      await client.invalidateQueries({ queryKey: objectKey(kind, at) })
      // What was typed during the save is a new edit.
      if (!latest.current || latest.current.text === draft.text) return discard()
      setDraft({
        base: withEdit(saved.result === 'saved' ? saved.object : draft.base, parsed.object),
        text: latest.current.text,
      })
    } catch (error) {
      setChecked(false)
      setProblem(problemOf(error).message)
    }
  }
  const merged = (resolved: string) => {
    if (!conflict) return
    setConflict(undefined)
    setDraft({ base: conflict.theirs, text: resolved })
  }
  const parsed = draft && fromYaml(draft.text)
  const changed =
    draft && parsed && 'object' in parsed
      ? { from: editable(draft.base as unknown as JsonObject), to: parsed.object }
      : undefined
  const affected = changed ? affectedManagers(managers, { ...changed, self: fieldManager }) : []
  return (
    <Columns side={<ManagersCard managers={managers} />}>
      {draft && (
        <Note>
          <span>
            {text.unsaved} {meanwhile(draft.base, object)}
          </span>
        </Note>
      )}
      {permission.answer === 'no' && (
        <Note tone="warn">
          <Denial {...permission} />
        </Note>
      )}
      <Card>
        <CodeEditor
          label={text.tabs.yaml}
          value={draft?.text ?? shown}
          onChange={change}
          complete={completeFor(kind)}
          notes={notes}
        />
      </Card>
      {problem && (
        <Note tone="bad">
          <span role="alert">{problem}</span>
        </Note>
      )}
      {warnings.map(one => (
        <Note key={one} tone="warn">
          {one}
        </Note>
      ))}
      {changed && (
        <Card title={editorText.yourChange(draft?.base.metadata.resourceVersion ?? '')}>
          <ChangeList from={changed.from} to={changed.to} />
        </Card>
      )}
      <AffectedManagers managers={affected} />
      {isChecked && <Note>{editorText.wouldSave}</Note>}
      {draft && (
        <DialogButtons>
          <Button onPress={discard}>{text.discard}</Button>
          <Button onPress={() => send(true)}>{text.check}</Button>
          <ActionButton look="primary" action={{ verb: 'patch', kind, ...at }} onPress={() => send(false)}>
            {text.save}
          </ActionButton>
        </DialogButtons>
      )}
      {conflict && draft && changed && (
        <MergeDialog
          base={changed.from}
          theirs={editable(conflict.theirs as unknown as JsonObject)}
          mine={changed.to}
          paths={conflict.paths}
          onResolved={merged}
          onCancel={() => setConflict(undefined)}
        />
      )}
    </Columns>
  )
}

/** The text that was saved, as the version that the next edit starts from. */
const withEdit = ({ metadata: { uid = '', resourceVersion = '' } }: Resource, edited: JsonObject): Resource =>
  ({ ...edited, metadata: { ...(edited['metadata'] as JsonObject), uid, resourceVersion } }) as unknown as Resource

function meanwhile(base: Resource, { metadata: { uid, resourceVersion } }: Resource): string {
  if (base.metadata.uid !== uid) return editorText.createdAgain
  return base.metadata.resourceVersion === resourceVersion ? '' : editorText.changedMeanwhile
}
