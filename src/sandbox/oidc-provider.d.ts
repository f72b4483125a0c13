/**
 * The part of oidc-provider 9 that the sandbox uses; the package ships no types. Not a description of the
 * library: what is missing here is not used.
 */
declare module 'oidc-provider' {
  import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';

  /** The library's view of a request, as far as the configuration's functions read it. */
  export interface Context {
    type: string;
    body: unknown;
    readonly oidc: {
      readonly client?: ClientModel;
      readonly params?: Readonly<Record<string, unknown>>;
      readonly session?: SessionModel;
      readonly result?: { readonly consent?: { readonly grantId?: string } };
      readonly requestParamOIDCScopes: ReadonlySet<string>;
    };
  }

  export interface ClientModel {
    readonly clientId: string;
    readonly clientName?: string;
    grantTypeAllowed(type: string): boolean;
  }

  export interface GrantModel {
    readonly jti: string;
    readonly accountId: string;
    addOIDCScope(scope: string): void;
    addResourceScope(resource: string, scope: string): void;
    /** Resolves to the id of the grant. */
    save(): Promise<string>;
  }

  export interface SessionModel {
    accountId?: string;
    authorizations?: Record<string, unknown> | undefined;
    grantIdFor(clientId: string): string | undefined;
    persist(): Promise<string>;
  }

  export interface AccessTokenModel {
    readonly accountId?: string;
    readonly clientId?: string;
    readonly grantId?: string;
    readonly scopes: ReadonlySet<string>;
  }

  export interface InteractionModel {
    readonly uid: string;
    readonly grantId?: string;
    readonly params: Readonly<Record<string, unknown>>;
    readonly session?: { readonly uid: string; readonly accountId?: string };
    readonly prompt: {
      readonly name: string;
      readonly details: {
        readonly missingOIDCScope?: readonly string[];
        readonly missingResourceScopes?: Readonly<Record<string, readonly string[]>>;
      };
    };
  }

  export class Provider {
    constructor(issuer: string, configuration: Readonly<Record<string, unknown>>);
    readonly issuer: string;
    readonly Client: { find(id: string): Promise<ClientModel | undefined> };
    readonly AccessToken: { find(value: string): Promise<AccessTokenModel | undefined> };
    readonly Session: { findByUid(uid: string): Promise<SessionModel | undefined> };
    readonly Grant: {
      new (from: { accountId: string; clientId: string }): GrantModel;
      find(id: string): Promise<GrantModel | undefined>;
    };
    callback(): RequestListener;
    interactionDetails(request: IncomingMessage, response: ServerResponse): Promise<InteractionModel>;
    /** Stores the result and resolves to the URL at which the authorization request goes on. */
    interactionResult(
      request: IncomingMessage,
      response: ServerResponse,
      result: Readonly<Record<string, unknown>>,
      options: { readonly mergeWithLastSubmission: boolean },
    ): Promise<string>;
    on(event: 'grant.success', listener: (context: Context) => void): this;
    on(event: 'grant.error' | 'server_error', listener: (context: Context, error: Error) => void): this;
  }

  export const errors: { readonly InvalidTarget: new () => Error };

  export const interactionPolicy: {
    base(): unknown[] & { add(prompt: object, index?: number): void };
    readonly Prompt: new (options: { name: string; requestable: boolean }) => object;
  };
}
