//! Binds the listeners of the server.

use super::{AppError, ServeSettings, port_file};
use crate::config::ListenConfig;
use crate::server::{Address, BoundListener, ListenerSet};

/// The bound listeners of a server.
pub(super) struct BoundListeners {
    /// Listeners of the services and of the console.
    pub served: ListenerSet,
    /// Listeners of the admin server: metrics and readiness over HTTP.
    pub admin: Vec<BoundListener>,
    /// Listener of the admission webhook.
    pub admission: Option<BoundListener>,
}

/// The addresses that a server listens on, with the ports that the system assigned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundAddresses {
    /// Addresses of all gRPC services.
    pub all: Vec<Address>,
    /// Address of the health service alone.
    pub health: Option<Address>,
    /// Addresses of the admin server: metrics and readiness over HTTP.
    pub admin: Vec<Address>,
    /// Address of the admission webhook.
    pub admission: Option<Address>,
    /// Address of the console.
    pub console: Option<Address>,
}

impl BoundListeners {
    /// Binds all configured addresses.
    pub async fn bind(settings: &ServeSettings, config: &ListenConfig) -> Result<Self, AppError> {
        let mut all = Vec::with_capacity(config.all.len());
        for address in &config.all {
            all.push(bind(address).await?);
        }
        let tcp = config.admin.map(Address::Tcp);
        let unix = settings.admin_socket.clone().map(Address::Unix);
        let mut admin = Vec::new();
        for address in tcp.into_iter().chain(unix) {
            admin.push(bind(&address).await?);
        }
        Ok(Self {
            served: ListenerSet {
                all,
                health: bind_if(config.health.as_ref()).await?,
                console: bind_if(config.console.map(Address::Tcp).as_ref()).await?,
            },
            admin,
            admission: bind_if(config.admission.map(Address::Tcp).as_ref()).await?,
        })
    }

    fn addresses(&self) -> BoundAddresses {
        let of = |listener: &BoundListener| listener.address().clone();
        BoundAddresses {
            all: self.served.all.iter().map(of).collect(),
            health: self.served.health.as_ref().map(of),
            admin: self.admin.iter().map(of).collect(),
            admission: self.admission.as_ref().map(of),
            console: self.served.console.as_ref().map(of),
        }
    }

    /// Logs the bound addresses and writes the port file.
    pub fn announce(&self, settings: &ServeSettings) -> Result<BoundAddresses, AppError> {
        let addresses = self.addresses();
        let first = addresses.all.iter().find(|a| matches!(a, Address::Tcp(_)));
        if let (Some(path), Some(first)) = (&settings.port_file, first) {
            port_file::write(path, &first.to_string()).map_err(|error| {
                AppError::Listen(format!(
                    "cannot write the port file {}: {error}",
                    path.display()
                ))
            })?;
        }
        let listening: Vec<String> = addresses.all.iter().map(Address::to_string).collect();
        let manifests = settings.inputs.manifests.iter();
        let manifests: Vec<String> = manifests.map(|path| path.display().to_string()).collect();
        tracing::info!(
            version = env!("CARGO_PKG_VERSION"),
            listen = listening.join(" "),
            health = addresses.health.as_ref().map(Address::to_string),
            admin = addresses.admin.first().map(Address::to_string),
            admission = addresses.admission.as_ref().map(Address::to_string),
            console = addresses
                .console
                .as_ref()
                .map(|address| format!("http://{address}/")),
            tls = settings.tls.is_some(),
            manifests = manifests.join(" "),
            cluster = settings.inputs.cluster.is_some(),
            "starting"
        );
        Ok(addresses)
    }
}

async fn bind_if(address: Option<&Address>) -> Result<Option<BoundListener>, AppError> {
    match address {
        Some(address) => bind(address).await.map(Some),
        None => Ok(None),
    }
}

async fn bind(address: &Address) -> Result<BoundListener, AppError> {
    let bound = BoundListener::bind(address).await;
    bound.map_err(|error| AppError::Listen(format!("cannot listen on {address}: {error}")))
}
