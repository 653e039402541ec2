// The difference between two objects, field by field.

import type { Json, JsonObject } from '../../api/object.ts'
import { changedPaths, pathText, valueAt } from '../editor/difference.ts'
import style from './secret-data.module.css'

const shown = (value: Json) => (typeof value === 'string' ? value : JSON.stringify(value))

export function ChangeList({ from, to }: { from: JsonObject; to: JsonObject }) {
  return (
    <div className={style.diff}>
      {changedPaths(from, to).map(path => {
        const [before, after] = [valueAt(from, path), valueAt(to, path)]
        return (
          <div key={pathText(path)} className={style.pair}>
            {before !== undefined && (
              <div className={style.removed}>
                <span>−</span>
                <span className={style.value}>
                  {pathText(path)}: {shown(before)}
                </span>
              </div>
            )}
            {after !== undefined && (
              <div className={style.added}>
                <span>+</span>
                <span className={style.value}>
                  {pathText(path)}: {shown(after)}
                </span>
              </div>
            )}
          </div>
        )
      })}
    </div>
  )
}
