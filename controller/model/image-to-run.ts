import { repositoryOf } from '../../protocol/image-reference.ts'
import type { TaskSpec } from '../../protocol/task.ts'

/** A later attempt runs the image of the first one, whatever its tag means by then. Null: on the host. */
export function imageToRun({
  spec: { image = null },
  imageDigest,
}: {
  readonly spec: Pick<TaskSpec, 'image'>
  readonly imageDigest: string | null
}): string | null {
  return image === null || imageDigest === null ? image : `${repositoryOf(image)}@${imageDigest}`
}
