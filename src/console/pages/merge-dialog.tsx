// A three-way merge: the newest version, and your change on top of it. Changes of others to other fields are on both sides.

import { yaml } from '@codemirror/lang-yaml'
import { MergeView } from '@codemirror/merge'
import { EditorView } from '@codemirror/view'
import { useEffect, useRef } from 'react'
import { applyMergePatch } from '../../api/merge-patch.ts'
import type { JsonObject } from '../../api/object.ts'
import { editorTheme } from '../editor/code-editor.tsx'
import { changedPaths, mergePatch, type Path, pathText } from '../editor/difference.ts'
import { toYaml } from '../editor/yaml.ts'
import { text } from '../text/common.ts'
import { editorText } from '../text/editor.tsx'
import { Button } from '../ui/button.tsx'
import { DialogButtons, Modal } from '../ui/dialog.tsx'
import { Note } from '../ui/parts.tsx'

type MergeDialogProps = {
  readonly base: JsonObject
  readonly theirs: JsonObject
  readonly mine: JsonObject
  readonly paths: readonly Path[]
  readonly onResolved: (text: string) => void
  readonly onCancel: () => void
}

export function MergeDialog({ base, theirs, mine, paths, onResolved, onCancel }: MergeDialogProps) {
  const place = useRef<HTMLDivElement>(null)
  const view = useRef<MergeView>(undefined)
  const theirText = toYaml(theirs)
  const myText = toYaml(applyMergePatch(theirs, mergePatch(base, mine) ?? {}))
  const theirChanges = changedPaths(base, theirs)
  // biome-ignore lint/correctness/useExhaustiveDependencies: the view is made once
  useEffect(() => {
    if (!place.current) return
    const side = (label: string, isReadOnly: boolean) => [
      editorTheme,
      yaml(),
      EditorView.editable.of(!isReadOnly),
      EditorView.contentAttributes.of({ 'aria-label': label, tabindex: '0' }),
    ]
    const merge = new MergeView({
      parent: place.current,
      a: { doc: theirText, extensions: side(editorText.newest, true) },
      b: { doc: myText, extensions: side(editorText.yourText, false) },
      revertControls: 'a-to-b',
      highlightChanges: true,
    })
    view.current = merge
    return () => merge.destroy()
  }, [])
  return (
    <Modal title={editorText.conflict} isOpen isWide onClose={onCancel}>
      <Note tone="warn">
        <span>{editorText.inConflict(paths.map(pathText).join(', '), theirChanges.map(pathText).join(', '))}</span>
      </Note>
      <p>{editorText.mergeAdvice}</p>
      <div ref={place} />
      <DialogButtons>
        <Button onPress={onCancel}>{text.cancel}</Button>
        <Button onPress={() => onResolved(theirText)}>{editorText.takeTheirs}</Button>
        <Button look="primary" onPress={() => onResolved(view.current?.b.state.doc.toString() ?? myText)}>
          {editorText.useRight}
        </Button>
      </DialogButtons>
    </Modal>
  )
}
