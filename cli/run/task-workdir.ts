/** The folder of a task on this machine; the controller expects the hash of its manifest instead. */
import type { HeadroomClient, TaskRequest } from '../../clients/typescript/client.ts'

/** Uploads the folder. */
export async function withUpload(client: HeadroomClient, request: TaskRequest): Promise<TaskRequest> {
  const { workdir = null } = request
  if (workdir === null) return request
  const { uploadFolder } = await import('../files/upload-folder.ts')
  return { ...request, workdir: await uploadFolder(client, workdir) }
}

/** The same request without an upload: for a dry run, and to compare. */
export async function withManifest(request: TaskRequest): Promise<TaskRequest> {
  const { workdir = null } = request
  if (workdir === null) return request
  const { manifestOf } = await import('../files/folder-manifest.ts')
  return { ...request, workdir: (await manifestOf(workdir)).sha256 }
}
