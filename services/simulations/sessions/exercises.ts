/** The exercises that are part of Headroom, and their sessions. */
import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { byCodeUnits } from '../../../controller/structures/order.ts'
import type { ExerciseBrief, Simulation } from '../../../controller/ports/simulation.ts'
import { briefOf } from '../../../simulator/exercise/brief.ts'
import { loadExercise } from '../../../simulator/exercise/load-exercise.ts'
import { refused } from '../library/limits.ts'
import type { Sessions } from './sessions.ts'

const EXERCISE_SUFFIX = '.exercise.yaml'

interface Known {
  readonly brief: ExerciseBrief
  readonly file: string
  readonly sha256: string
}

/** The part of the port for exercises. */
export function exercisesPort(
  sessions: Sessions,
  folder: string,
): Pick<Simulation, 'exercises' | 'startExercise' | 'exercise' | 'answer' | 'finish'> {
  let reading: Promise<readonly Known[]> | null = null
  const known = (): Promise<readonly Known[]> => (reading ??= readAll(folder))
  return {
    exercises: async () => (await known()).map(({ brief }) => brief),
    async startExercise(name, by) {
      const found = (await known()).find(({ brief }) => brief.name === name)
      if (found === undefined) return refused({ code: 'not_found', what: 'exercise', id: name })
      return sessions.startExercise(name, found.file, found.sha256, by)
    },
    exercise: (id) => sessions.exercise(id),
    answer: (id, question, value, by) => sessions.answer(id, question, value, by),
    finish: (id) => sessions.finish(id),
  }
}

/** Sorted by name. They are part of Headroom: an invalid one is a bug. */
async function readAll(folder: string): Promise<readonly Known[]> {
  const names = (await readdir(folder)).filter((name) => name.endsWith(EXERCISE_SUFFIX))
  const all = names.map(async (name): Promise<Known> => {
    const file = join(folder, name)
    const text = await readFile(file, 'utf8')
    return {
      brief: briefOf(loadExercise(text, folder, name)),
      file,
      sha256: createHash('sha256').update(text).digest('hex'),
    }
  })
  return (await Promise.all(all)).sort((a, b) => byCodeUnits(a.brief.name, b.brief.name))
}
