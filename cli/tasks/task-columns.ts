/** The columns that identify a task in every table of tasks. */
import type { Task } from '../../clients/typescript/client.ts'
import { cutTo, type Column } from '../output/table.ts'

/** Characters on a narrow terminal: a table of running tasks fits 80. */
const BRIEF_ID = 8
const BRIEF_NAME = 16

export const ID_COLUMN: Column<Task> = {
  title: 'ID',
  of: (task) => task.id,
  brief: ({ id }) => id.slice(0, BRIEF_ID),
}

export const NAME_COLUMN: Column<Task> = {
  title: 'NAME',
  of: (task) => task.name,
  brief: ({ id, name }) => (name === id ? null : cutTo(BRIEF_NAME, name)),
}
