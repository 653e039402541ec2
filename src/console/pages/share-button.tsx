// Shares a secret with a team: adds an entry to spec.access.

import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import type { JsonObject } from '../../api/object.ts'
import { Team } from '../../kinds/team.ts'
import { objectKey, readMasked } from '../data/object.ts'
import { useRows } from '../data/rows.ts'
import { server } from '../data/server.ts'
import { text } from '../text/common.ts'
import { secretText } from '../text/secrets.tsx'
import { ActionButton, Button } from '../ui/button.tsx'
import { DialogButtons, Modal } from '../ui/dialog.tsx'
import { SelectField } from '../ui/fields.tsx'
import { Note, problemOf } from '../ui/parts.tsx'
import type { TabProps } from './tab.ts'

const rights: { readonly [label: string]: readonly string[] } = {
  [secretText.rights.read]: ['get'],
  [secretText.rights.change]: ['get', 'update', 'patch'],
}

export function ShareButton({ kind, at }: TabProps) {
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <ActionButton action={{ verb: 'patch', kind, ...at }} onPress={() => setOpen(true)}>
        {secretText.share}
      </ActionButton>
      {isOpen && <ShareDialog kind={kind} at={at} onClose={() => setOpen(false)} />}
    </>
  )
}

function ShareDialog({ kind, at, onClose }: Pick<TabProps, 'kind' | 'at'> & { onClose: () => void }) {
  const client = useQueryClient()
  const { rows } = useRows(Team)
  const [team, setTeam] = useState('')
  const [right, setRight] = useState<string>(secretText.rights.read)
  const [problem, setProblem] = useState('')
  const share = async () => {
    try {
      const { object } = await readMasked(kind, at)
      const access = (object.spec?.['access'] ?? []) as readonly JsonObject[]
      const entry = { verbs: [...(rights[right] ?? [])], teams: [team] }
      const body = {
        metadata: { resourceVersion: object.metadata.resourceVersion ?? '' },
        spec: { access: [...access, entry] },
      }
      await server.patch(kind, at, { type: 'merge', body }, { fieldManager: 'console' })
      await client.invalidateQueries({ queryKey: objectKey(kind, at) })
      await client.invalidateQueries({ queryKey: ['who-can'] })
      onClose()
    } catch (error) {
      setProblem(problemOf(error).message)
    }
  }
  return (
    <Modal title={secretText.shareNamed(at.name)} isOpen onClose={onClose}>
      <SelectField label={secretText.team} value={team} onChange={setTeam} options={rows.map(({ name }) => name)} />
      <SelectField label={secretText.theyMay} value={right} onChange={setRight} options={Object.keys(rights)} />
      {problem && (
        <Note tone="bad">
          <span role="alert">{problem}</span>
        </Note>
      )}
      <DialogButtons>
        <Button onPress={onClose}>{text.cancel}</Button>
        <Button look="primary" isDisabled={team === ''} onPress={() => share()}>
          {secretText.share}
        </Button>
      </DialogButtons>
    </Modal>
  )
}
