import type { Answer, AnswerTo } from '../../model/command.ts'
import { problemOfRefusal } from './errors.ts'

/**
 * Gives the engine a command and waits for its answer, which comes when it is durable. The command itself is
 * carried out within the call: what was looked up in the same breath still holds.
 * @throws ApiProblem when the engine refuses.
 */
export function ask<T>(command: (answer: AnswerTo<T>) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    command((answer: Answer<T>) => {
      if (answer.ok) resolve(answer.value)
      else reject(problemOfRefusal(answer.refusal))
    })
  })
}
