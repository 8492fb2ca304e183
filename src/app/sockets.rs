//! Where the server listens.

use super::{AppError, ServeSettings, port_file};
use crate::config::ListenConfig;
use crate::server::{Address, BoundListener};

/// Bound listeners.
pub(super) struct BoundListeners {
    /// With all services.
    pub all: Vec<BoundListener>,
    /// With health alone.
    pub health: Option<BoundListener>,
    /// With metrics and readiness.
    pub admin: Vec<BoundListener>,
}

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundAddresses {
    /// With all services.
    pub all: Vec<Address>,
    /// With health alone.
    pub health: Option<Address>,
    /// With metrics and readiness.
    pub admin: Vec<Address>,
}

impl BoundListeners {
    /// Listens wherever it is wanted.
    pub async fn bind(settings: &ServeSettings, wanted: &ListenConfig) -> Result<Self, AppError> {
        let mut all = Vec::with_capacity(wanted.all.len());
        for address in &wanted.all {
            all.push(bind(address).await?);
        }
        let health = match &wanted.health {
            Some(address) => Some(bind(address).await?),
            None => None,
        };
        let tcp = wanted.admin.map(Address::Tcp);
        let unix = settings.admin_socket.clone().map(Address::Unix);
        let mut admin = Vec::new();
        for address in tcp.into_iter().chain(unix) {
            admin.push(bind(&address).await?);
        }
        Ok(Self { all, health, admin })
    }

    fn addresses(&self) -> BoundAddresses {
        let of = |listener: &BoundListener| listener.address().clone();
        BoundAddresses {
            all: self.all.iter().map(of).collect(),
            health: self.health.as_ref().map(of),
            admin: self.admin.iter().map(of).collect(),
        }
    }

    /// Logs where the server listens and writes it to the port file.
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
            tls = settings.tls.is_some(),
            manifests = manifests.join(" "),
            cluster = settings.inputs.cluster.is_some(),
            "starting"
        );
        Ok(addresses)
    }
}

async fn bind(address: &Address) -> Result<BoundListener, AppError> {
    let bound = BoundListener::bind(address).await;
    bound.map_err(|error| AppError::Listen(format!("cannot listen on {address}: {error}")))
}
