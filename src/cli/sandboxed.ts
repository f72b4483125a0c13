/** Loads what stands on the sandbox: a server in production has neither its authorization server nor its client. */
import { Refusal } from '../errors.ts';

const NEEDED = ['oidc-provider', '@modelcontextprotocol/client'];

/** @throws Refusal `configuration_invalid` saying what to install. */
export async function sandboxed<Module>(load: () => Promise<Module>): Promise<Module> {
  try {
    return await load();
  } catch (error) {
    const missing = error instanceof Error && 'code' in error && error.code === 'ERR_MODULE_NOT_FOUND';
    if (!missing || !NEEDED.some((name) => error.message.includes(`'${name}'`))) throw error;
    throw new Refusal('configuration_invalid', {
      message: `the sandbox is not part of a production install; add it with: npm install --no-save ${NEEDED.join(' ')}`,
      cause: error,
    });
  }
}
